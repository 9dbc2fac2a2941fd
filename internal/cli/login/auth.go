package login

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/desktop"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// NewAuthCommand returns the group dowel auth.
func NewAuthCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Show your logins and where their key is",
		Long:  "Show your logins at servers, and manage the key that encrypts them. See dowel login to log in.",
	}
	cmd.AddCommand(newStatusCommand(f), newKeyCommand(f), newDocumentCommand(f))
	return cmd
}

// StatusLine is the JSON output for a login. It holds no secrets.
type StatusLine struct {
	Server  string   `json:"server"`
	Account string   `json:"account,omitzero"`
	Issuer  string   `json:"issuer"`
	Scopes  []string `json:"scopes"`
	// Expires is when the access token expires. dowel then renews a Renewable login by itself.
	Expires   time.Time `json:"expires,omitzero"`
	Renewable bool      `json:"renewable"`
}

// Status is the JSON output of dowel auth status.
type Status struct {
	Key    string       `json:"key"` // keyring, file, options, or empty if there is no key yet
	Logins []StatusLine `json:"logins"`
}

func newStatusCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show your logins",
		Long: `Show the servers at which you are logged in, the authorization server and the scopes of each login, when its token ends, and
where the key is that encrypts the logins. No secret is shown.`,
		Example: "  dowel auth status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return showStatus(cmd.Context(), f)
		},
	}
}

func showStatus(ctx context.Context, f *factory.Factory) error {
	store, err := f.OpenLoginFiles()
	if err != nil {
		return err
	}
	all := Status{Logins: []StatusLine{}}
	if all.Key, err = store.KeyPlace(); err != nil {
		return err
	}
	records, err := store.Records(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.AccessToken == "" && r.RefreshToken == "" {
			continue // a registration only
		}
		all.Logins = append(all.Logins, StatusLine{
			Server: secretmask.URL(r.Server), Account: r.Account, Issuer: r.Issuer, Scopes: append([]string{}, r.Granted...), Expires: r.ExpiresAt, Renewable: r.RefreshToken != "",
		})
	}
	slices.SortFunc(all.Logins, func(a, b StatusLine) int { return strings.Compare(a.Server+" "+a.Account, b.Server+" "+b.Account) })
	if f.JSON {
		return f.WriteValue(all)
	}
	if len(all.Logins) == 0 {
		f.WriteMessage("You are logged in nowhere. Log in with dowel login SERVER.")
	}
	for _, l := range all.Logins {
		f.WriteMessage("%s", describeLogin(l))
	}
	if words := factory.KeyPlaces[all.Key]; words != "" {
		f.WriteMessage("The key of the logins is %s.", words)
	}
	return nil
}

// describeLogin describes a login in a line.
func describeLogin(l StatusLine) string {
	text := l.Server
	if l.Account != "" {
		text += " (" + l.Account + ")"
	}
	text += ": logged in at " + l.Issuer
	if len(l.Scopes) > 0 {
		text += ", scopes " + strings.Join(l.Scopes, " ")
	}
	switch ended := !l.Expires.IsZero() && time.Now().After(l.Expires); {
	case l.Renewable:
		text += ", renewed when needed"
	case ended:
		text += ", ended: log in again"
	case !l.Expires.IsZero():
		text += ", ends " + l.Expires.Local().Format("2006-01-02 15:04")
	}
	return term.Line(text)
}

func newKeyCommand(f *factory.Factory) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "key --move PLACE",
		Short: "Move the key of your logins",
		Long: `Move the key that encrypts your logins: to a file beside them, or to the keyring of the desktop. A keyring cannot be reached over
SSH, from cron or from a service, so that dowel cannot use your logins there: run this once in a session of your desktop. A key
file protects the logins in backups; it does not protect them from other programs that run as you.`,
		Example: "  dowel auth key --move file",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			if to != desktop.InFile && to != desktop.InKeyring {
				return exit.Usagef("--move %q: want file or keyring", to)
			}
			if err := factory.RunningDaemon().Authorize(cmd.Context()); err != nil {
				return err
			}
			return moveKey(cmd.Context(), f, to)
		},
	}
	cmd.Flags().StringVar(&to, "move", "", "the new `place`: file or keyring")
	return cmd
}

func moveKey(ctx context.Context, f *factory.Factory, to string) error {
	store, err := f.OpenLoginFiles()
	if err != nil {
		return err
	}
	if err := store.MoveKey(ctx, to); err != nil {
		return err
	}
	if f.JSON {
		return f.WriteValue(map[string]string{"key": to})
	}
	f.WriteMessage("The key of the logins is %s.", factory.KeyPlaces[to])
	return nil
}

func newDocumentCommand(f *factory.Factory) *cobra.Command {
	var c auth.Client
	cmd := &cobra.Command{
		Use:   "client-document URL",
		Short: "Write the metadata document of a client",
		Long: `Write the client ID metadata document with which dowel can log in without a registration. Serve it at URL, which must be https,
as application/json, and set that URL as oauth.clientDocument in the entries of servers.`,
		Example: "  dowel auth client-document https://example.com/dowel.json > dowel.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f.Parsed = true
			c.DocumentURL = args[0]
			document, err := auth.ClientDocument(c)
			if err != nil {
				return exit.UsageError{Err: err}
			}
			_, err = fmt.Fprintf(f.Stdout, "%s\n", document)
			return err
		},
	}
	cmd.Flags().StringVar(&c.Name, "name", "", "the `name` that users see at the login (default dowel)")
	cmd.Flags().StringVar(&c.RedirectURI, "redirect-uri", "", "the only `URI` to which browsers are redirected")
	return cmd
}
