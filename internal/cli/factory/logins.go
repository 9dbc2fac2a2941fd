package factory

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/desktop"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/webpage"
)

// OpenLogins opens the logins of the user for the servers of a configuration, and warns on stderr.
func (f *Factory) OpenLogins() auth.Store {
	return OpenLogins(func(err error) { f.Warn("%v", err) })
}

// OpenLogins opens the logins of the user for the servers of a configuration. It passes warnings to
// warn. If the logins cannot be opened, servers that need one say so.
func OpenLogins(warn func(error)) auth.Store {
	s, err := openLoginFiles(warn)
	if err != nil {
		return closedLogins{err}
	}
	return s
}

// closedLogins takes the place of a store that cannot be opened.
type closedLogins struct{ err error }

// Load finds no login, so that servers that need no login work.
func (c closedLogins) Load(context.Context, string) (*auth.Record, error) { return nil, nil }

func (c closedLogins) Update(context.Context, string, func(*auth.Record) (*auth.Record, error)) error {
	return c.err
}

// OpenLoginFiles opens the logins of the user: the folder auth beside the state file. It touches no
// file and no keyring. DOWEL_AUTH_KEY is a key in hexadecimal or base64, DOWEL_KEYRING=off keeps a
// new key out of the keyring.
func (f *Factory) OpenLoginFiles() (*desktop.Store, error) {
	return openLoginFiles(func(err error) { f.Warn("%v", err) })
}

func openLoginFiles(warn func(error)) (*desktop.Store, error) {
	folder := StateDir()
	if folder == "" {
		return nil, errors.New("the folder of your logins is unknown: set HOME or XDG_STATE_HOME")
	}
	o := desktop.StoreOptions{NoKeyring: os.Getenv("DOWEL_KEYRING") == "off", Warn: warn}
	if text := os.Getenv("DOWEL_AUTH_KEY"); text != "" {
		var err error
		if o.Key, err = parseLoginKey(text); err != nil {
			return nil, err
		}
	}
	return desktop.OpenStore(filepath.Join(folder, "auth"), &o)
}

// parseLoginKey parses the value of DOWEL_AUTH_KEY.
func parseLoginKey(text string) ([]byte, error) {
	const size = 32
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == size {
		return key, nil
	}
	if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) == size {
		return key, nil
	}
	return nil, errors.New("DOWEL_AUTH_KEY is no key: want 32 bytes in hexadecimal or base64, as from: openssl rand -hex 32")
}

// IsAttended reports whether a user sits at the terminal of this command.
func (f *Factory) IsAttended() bool { return term.Terminal(f.Stdin) != nil && f.Stderr.IsTerminal() }

// UserLogin returns how the user logs in at the terminal of this command: with a browser, or by
// pasting the address to which a browser elsewhere was redirected. in reads the terminal. It
// returns nil without a terminal.
func (f *Factory) UserLogin(in *term.Lines) auth.Login {
	if !f.IsAttended() {
		return nil
	}
	return f.newLogin(in, nil)
}

// LoginWays says how a user logs in. The zero value opens a browser. On a machine without a browser
// it shows a code, if the authorization server offers codes.
type LoginWays struct {
	NoBrowser bool // leaves opening the page to the user
	Device    bool // by a code alone
}

// NewLogin returns a login that shows its page on stderr also without a terminal. It reads pasted
// addresses from stdin.
func (f *Factory) NewLogin(ways LoginWays) auth.Login {
	var open func(string) error
	if ways.NoBrowser {
		open = desktop.NoBrowser
	}
	l := f.newLogin(term.NewLines(f.Stdin), open)
	l.codeOnly = ways.Device
	return l
}

func (f *Factory) newLogin(in *term.Lines, open func(string) error) *userLogin {
	return &userLogin{
		browser: &desktop.Login{
			Show:        f.showLoginPage,
			OpenBrowser: open,
			Paste:       func(ctx context.Context) (string, error) { return in.Next(ctx) },
			Warn:        func(err error) { f.Warn("%v", err) },
		},
		show:        f.showDeviceCode,
		prefersCode: open == nil && !webpage.CanOpen(),
	}
}

// showLoginPage tells the user to open a page.
func (f *Factory) showLoginPage(p desktop.Page) {
	if f.JSON {
		WriteJSONLine(f.Stderr, map[string]any{"login": map[string]any{"server": p.Server, "url": p.URL, "port": p.Port}})
		return
	}
	text := fmt.Sprintf("Log in to %s in your browser:\n\n  %s\n\n", term.Line(p.Server), term.Line(p.URL))
	if p.Port == 0 {
		text += "Then paste the address of the page to which the browser is sent."
	} else {
		text += fmt.Sprintf("If the browser is on another machine, paste the address of the page that it cannot open at the end, "+
			"or forward the port there first: ssh -L %[1]d:127.0.0.1:%[1]d HOST", p.Port)
	}
	fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(text))
}

// KeyPlaces describes the results of [desktop.Store.KeyPlace] for people.
var KeyPlaces = map[string]string{
	desktop.InKeyring: "in the keyring of your desktop",
	desktop.InFile:    "in a file beside them: backups without that file are safe, but programs that run as you can read the logins",
	desktop.InOptions: "in the variable DOWEL_AUTH_KEY",
}

// DescribeLoginKey returns where the key of the user's logins is, in words for people. It returns
// "" if the user is not logged in at the server with a URL, with the account of its entry.
func (f *Factory) DescribeLoginKey(ctx context.Context, server, account string) (string, error) {
	store, err := f.OpenLoginFiles()
	if err != nil {
		return "", err
	}
	place, err := store.KeyPlace()
	if place == "" || err != nil {
		return "", err
	}
	records, err := store.Records(ctx)
	if err != nil || !slices.ContainsFunc(records, func(r *auth.Record) bool { return r.Server == server && r.Account == account && r.AccessToken != "" }) {
		return "", err
	}
	return KeyPlaces[place], nil
}
