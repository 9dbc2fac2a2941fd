package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/published"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/spf13/cobra"
)

// NewAddCommand returns the command dowel add. dowel servers add is the same command.
func NewAddCommand(f *factory.Factory) *cobra.Command {
	var w connect.TargetFlags
	var where factory.Places
	var flags published.Flags
	var dry bool
	cmd := &cobra.Command{
		Use:   "add NAME [-- COMMAND… | --url URL]",
		Short: "Add a server to your dowel.json: by its command, URL or name in the MCP registry",
		Long: `Add a server to your own dowel.json. Give its command after --, or its --url. A built-in server needs only its name and
perhaps options. Use variables such as ${TOKEN} in quotes instead of secrets: they are written as variables. A running dowel
starts the server at once and shows the result.

A published server needs neither command nor URL. Give its name in the MCP registry (dowel search finds it), a server.json
file, an MCPB bundle (FILE.mcpb or its URL), or the install link of another tool. dowel shows what will run, asks for the
values that the server needs, and fixes the version. What you type for a secret is not shown and goes into a file that only you
can read; the entry names the file. A bundle is unpacked into your data folder. dowel servers remove removes both.

Without servers of your own, dowel starts its built-in servers. After you add your first server, it no longer does.`,
		Example: `  dowel add files -- npx -y @modelcontextprotocol/server-filesystem .
  dowel add docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'
  dowel add io.github.owner/weather --set CITY=Oslo
  dowel add ./weather-1.2.0.mcpb --dry-run`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return addServer(f, cmd, args, w, where, flags, dry)
		},
	}
	w.AddFlags(cmd)
	where.AddFlags(cmd)
	flags.Add(cmd)
	cmd.Flags().Lookup("config").Usage = "add it to this `file` instead of your own dowel.json"
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

func addServer(f *factory.Factory, cmd *cobra.Command, args []string, w connect.TargetFlags, where factory.Places, flags published.Flags, dry bool) error {
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	set := config.Load(o)
	if err := checkEditable(set, o); err != nil {
		return err
	}
	n, err := parseNewServer(f, &w, cmd, args, flags, dry)
	if err != nil {
		return err
	}
	defer n.Close()
	given, entry := n.Name, n.Entry
	name := wirename.Fit(given)
	for _, taken := range []string{given, name} {
		if s := set.Server(taken); s != nil {
			return exit.Usagef("a server named %s exists already: %s", taken, s.At)
		}
	}
	if name != given && !hasTitle(entry) {
		entry = append(edit.Object{{Key: "title", Value: given}}, entry...)
	}
	change := func(text []byte, format edit.Format) ([]byte, error) {
		return edit.Set(text, format, []string{"mcpServers", name}, entry)
	}
	path := config.UserFile(o)
	if dry {
		return editing.PreviewEdit(f, path, change)
	}
	if n.Unpack != nil {
		if err := n.Unpack(); err != nil {
			return err
		}
	}
	if err := n.StoreSecrets(); err != nil {
		return err
	}
	result, err := editing.WriteEdit(path, false, change)
	if err != nil {
		return errors.Join(err, n.RemoveSecrets())
	}
	added := Addition{File: path, Changed: result.Changed, Notes: n.Notes}
	if name != given {
		added.Notes = append(added.Notes, fmt.Sprintf("the server is called %s here, since tool names cannot contain %q", name, given))
	}
	if len(o.Files) == 0 && usesBuiltIn(set) {
		added.Notes = append(added.Notes, fmt.Sprintf("dowel no longer starts its built-in servers (%s), since you now have a server of your own; to keep one, add it, for example: dowel add %s",
			strings.Join(daemon.DefaultServers(), ", "), otherBuiltIn(name)))
	}
	if !f.JSON {
		editing.ShowWritten(f, path, result)
	}
	return showAddition(cmd.Context(), f, name, added)
}

// hasTitle reports whether an entry has a title.
func hasTitle(entry edit.Object) bool {
	return slices.ContainsFunc(entry, func(m edit.Member) bool { return m.Key == "title" })
}

// checkEditable returns an error if the files of --config cannot take an entry in dowel's format.
func checkEditable(set *config.Set, o config.Options) error {
	if len(o.Files) == 0 {
		return nil
	}
	if len(o.Files) > 1 {
		return exit.Usagef("--config: want one file to add the server to")
	}
	for _, file := range set.Files {
		d, err := config.LookupDialect(file.Dialect)
		if file.Dialect != "" && err == nil && !slices.Equal(d.Key, []string{"mcpServers"}) {
			return exit.Usagef("--config: %s has the format of %s, which dowel add cannot write; see dowel import and dowel export", file.Path, d.Title)
		}
	}
	return nil
}

// otherBuiltIn returns the name of a built-in server that is not name.
func otherBuiltIn(name string) string {
	names := daemon.DefaultServers()
	return names[slices.IndexFunc(names, func(other string) bool { return other != name })]
}

// Addition is the JSON output of dowel servers add and set.
type Addition struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Outcome
	Notes []string `json:"notes,omitempty"`
}

// showAddition reloads the running daemon, if any, and shows the state of the added or
// changed server.
func showAddition(ctx context.Context, f *factory.Factory, name string, added Addition) error {
	added.Server, added.Did = name, cmp.Or(added.Did, "add")
	state, err := awaitAdded(ctx, f, name, &added.Outcome)
	if err != nil {
		return err
	}
	if f.JSON {
		return f.WriteValue(added)
	}
	f.WriteMessage("%s: %s", term.Line(name), state)
	for _, text := range added.Notes {
		f.WriteMessage("Note: %s", term.RevealLine(text))
	}
	return nil
}

// awaitAdded reloads the running daemon, waits until the new server has settled, stores its status
// in o, and returns a description of it.
func awaitAdded(ctx context.Context, f *factory.Factory, name string, o *Outcome) (state string, err error) {
	err = factory.RunningDaemon().Reload(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return "dowel is not running; dowel up starts the server, dowel doctor " + name + " tests it", nil
	}
	o.Running = true
	if err != nil {
		f.Warn("%v", err)
	}
	s, err := awaitSettled(ctx, name)
	if errors.Is(err, control.ErrNoServer) {
		return "the running dowel reads other files and does not have this server; see dowel status", nil
	}
	o.Status, o.Cause, o.Problem, o.Advice = s.Status, s.Cause, s.Problem, s.Advice
	return describeState(s), err
}

// parseNewServer returns the name and the entry of the server that the command line describes.
func parseNewServer(f *factory.Factory, w *connect.TargetFlags, cmd *cobra.Command, args []string, flags published.Flags, dry bool) (*published.Server, error) {
	words, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, command = args[:dash], args[dash:]
	}
	switch {
	case len(words) == 0 || words[0] == "" || strings.ContainsFunc(words[0], func(r rune) bool { return r < ' ' }):
		return nil, exit.Usagef("name the server: dowel add NAME -- COMMAND…")
	case len(words) > 1 && len(command) == 0 && w.Url == "":
		if flags.Yes() { // probably of npx
			return nil, exit.Usagef("put the server's command after --, with --yes: dowel add %s -- %s --yes …", words[0], words[1])
		}
		return nil, exit.Usagef("put the server's command after --: dowel add %s -- %s", words[0], strings.Join(words[1:], " "))
	case len(words) > 1:
		return nil, exit.Usagef("want one name for the server, not %s", strings.Join(words, " "))
	}
	name := words[0]
	if len(command) == 0 && w.Url == "" && published.Is(name) {
		if err := checkPublishedFlags(cmd); err != nil {
			return nil, err
		}
		return published.Find(cmd.Context(), f, name, flags, dry)
	}
	for _, flag := range []string{"set", "from", "as"} {
		if cmd.Flags().Changed(flag) {
			return nil, exit.Usagef("--%s is for published servers, and %s is none: write its name in the registry as io.github.owner/name", flag, name)
		}
	}
	s := &config.Server{}
	var err error
	switch builtIn := slices.Contains(builtin.Names(), name); {
	case w.Url != "" && len(command) > 0:
		return nil, exit.Usagef("give either --url or a command after --, not both")
	case len(w.BuiltinOptions) > 0 && (w.Url != "" || len(command) > 0):
		return nil, exit.Usagef("--option is for built-in servers; put the server's own options after its command")
	case w.Url != "":
		err = fillURLEntry(w, s)
	case len(command) > 0:
		err = fillCommandEntry(w, s, command)
	case builtIn:
		err = fillBuiltInEntry(f, w, s, name, dry)
	case builtin.IsProgram(name):
		err = exit.Usagef("%[1]s is a program of its own: dowel add %[1]s -- dowel serve %[1]s", name)
	default:
		err = explainUnknownServer(name)
	}
	if err != nil {
		return nil, err
	}
	return &published.Server{Name: name, Entry: transfer.Entry(s, "")}, nil
}

// explainUnknownServer returns the error for a single word that names no server which dowel knows.
func explainUnknownServer(word string) error {
	shown := term.Line(secretmask.Text(word))
	scheme, _, isURL := strings.Cut(word, "://")
	switch {
	case isURL && slices.Contains([]string{"http", "https", "ws", "wss"}, scheme):
		return exit.Usagef("give the server a name: dowel add NAME --url %s", shown)
	case strings.Contains(word, " "):
		return exit.Usagef("give the server a name, and its command after --: dowel add NAME -- %s", shown)
	case strings.HasPrefix(word, "@") && strings.Contains(word, "/"):
		return exit.Usagef("if %s is a package of npm, give the server a name: dowel add NAME -- npx -y %[1]s", shown)
	}
	return exit.Usagef("give the command of %s after --, or its --url; built-in servers are %s; for a published server: dowel search %[1]s", shown, strings.Join(builtin.Names(), ", "))
}

// checkPublishedFlags refuses flags that describe a server, since the publisher describes it.
func checkPublishedFlags(cmd *cobra.Command) error {
	for _, name := range []string{"option", "header", "env", "dir"} {
		if cmd.Flags().Changed(name) {
			return exit.Usagef("--%s is for servers with a command or --url; give the values of a published server with --set NAME=VALUE", name)
		}
	}
	return nil
}

// fillURLEntry sets the entry s of a server at a URL.
func fillURLEntry(w *connect.TargetFlags, s *config.Server) error {
	if _, err := w.ByURL(); err != nil {
		return err
	}
	s.Kind, s.URL, s.Headers = config.Auto, w.Url, map[string]string{}
	for _, field := range w.Headers {
		name, value, _ := strings.Cut(field, ":")
		s.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return nil
}

// fillCommandEntry sets the entry s of a server that a command starts.
func fillCommandEntry(w *connect.TargetFlags, s *config.Server, command []string) error {
	if len(w.Headers) > 0 {
		return exit.Usagef("--header is for servers at a --url")
	}
	if _, err := w.Started(command); err != nil {
		return err
	}
	s.Kind, s.Command, s.Args, s.Dir, s.Env = config.Stdio, command[0], command[1:], w.Dir, map[string]string{}
	for _, setting := range w.Env {
		name, value, _ := strings.Cut(setting, "=")
		s.Env[name] = value
	}
	return nil
}

// fillBuiltInEntry sets the entry s of a built-in server, as a command that runs this program.
func fillBuiltInEntry(f *factory.Factory, w *connect.TargetFlags, s *config.Server, name string, dry bool) error {
	options, err := builtin.ParseOptions(w.BuiltinOptions)
	if err == nil {
		err = builtin.Check(name, options)
	}
	if err != nil {
		return exit.UsageError{Err: err}
	}
	self, err := editing.InstalledPath(f, dry)
	if err != nil {
		return err
	}
	words := w.BuiltinOptions
	if w.Dir == "" { // relative paths refer to the current folder, not to the folder of dowel up
		folder, err := os.Getwd()
		if err != nil {
			return err
		}
		words = builtin.Anchored(name, words, folder)
	}
	return fillCommandEntry(w, s, append([]string{self, "serve", name}, words...))
}
