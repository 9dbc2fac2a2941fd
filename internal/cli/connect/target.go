package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/modelkeys"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/spf13/cobra"
)

// allServers is the name of the target that is all servers as one.
const allServers = "all servers"

// Target is the server that a command line names.
type Target struct {
	// Name is the user's name for the server, or "" if only the server knows its own name.
	Name string
	// Origin says where the server comes from: a command, a URL or the configuration.
	Origin string
	// Dial is the target for [client.Dial].
	Dial any
	// Header is sent with each request to a URL.
	Header http.Header
	// Options holds the options of the definition in the configuration.
	Options client.Options
	// running is the running dowel that has the server under this name, or nil.
	running *control.Client
	// log has the accepted definitions of a server in the configuration, or is nil. If howToAccept
	// is not empty, changed definitions are withheld, and it tells users how to accept them.
	log         client.DefinitionLog
	howToAccept string
	// close releases resources of the target. It may be nil.
	close func()
}

// Label returns a short text that identifies the server before it has sent its name.
func (t Target) Label() string {
	if t.Name != "" {
		return t.Name
	}
	return term.Shorten(t.Origin, 60)
}

// IsRunning reports whether the running dowel has the server, so that its tasks outlive the
// command.
func (t Target) IsRunning() bool { return t.running != nil && t.Name != "" }

// AsClient returns the target for calls in the name of another client of the running dowel, such as
// an agent. An empty name, and another target, change nothing.
func (t Target) AsClient(name string) Target {
	if dial, ok := t.Dial.(streamable.URL); ok && t.IsRunning() && name != "" {
		dial.Header = func(context.Context) (http.Header, error) { return http.Header{control.HeaderClient: {name}}, nil }
		t.Dial = dial
	}
	return t
}

// CommandLine returns a dowel command line for an item of the server, for advice. Without an item
// it names only the server.
func (t Target) CommandLine(do, thing string) string {
	_, isCommand := t.Dial.(stdio.Command)
	switch {
	case t.Name == "" && isCommand:
		return strings.TrimSpace("dowel "+do+" "+thing) + " -- …"
	case t.Name == "":
		return strings.TrimSpace("dowel "+do+" "+thing) + " --url …"
	case t.Name == allServers:
		return strings.TrimSpace("dowel " + do + " " + thing)
	case thing == "":
		return "dowel " + do + " " + t.Name
	}
	return "dowel " + do + " " + t.Name + "." + thing
}

// TargetFlags holds the flags that select a server and say how to start it.
type TargetFlags struct {
	Url            string
	Headers        []string
	Env            []string
	Dir            string
	BuiltinOptions []string

	Found *Directory // read on first use; see [TargetFlags.Directory]
}

// AddFlags registers the flags.
func (f *TargetFlags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Url, "url", "", "the server's `URL`")
	flags.StringArrayVarP(&f.Headers, "header", "H", nil, "send a header field with each request to the --url (`'Name: value'`, repeatable)")
	flags.StringArrayVarP(&f.Env, "env", "e", nil, "set a variable in the server's environment (`KEY=VALUE`, repeatable)")
	flags.StringArrayVarP(&f.BuiltinOptions, "option", "O", nil, "an option of a built-in server (`NAME=VALUE`, repeatable; see dowel serve --help)")
	flags.StringVar(&f.Dir, "dir", "", "the `folder` to start the server in")
}

// NamingHelp explains in help texts how to name a server.
const NamingHelp = `The server is named in one of three ways, the same in every command:

  everything.echo        by its name: in the running dowel (dowel up), or else in your configuration, or else built in
  --url URL              by its URL
  … -- npx -y @acme/mcp  by the command that starts it, after --

Without --url and --, the first word names the server: SERVER.THING or SERVER THING.`

// Resolve returns the server that a command line names, and the other words. The error is a usage
// error, or it says why the server cannot be used.
func (f *TargetFlags) Resolve(cmd *cobra.Command, args []string) (t Target, rest []string, err error) {
	words, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, command = args[:dash], args[dash:]
		if len(command) == 0 {
			return t, nil, exit.Usagef("there is no command after --: write the server's command there")
		}
	}
	switch {
	case len(f.Headers) > 0 && f.Url == "":
		return t, nil, exit.Usagef("--header is for servers at a --url")
	case len(f.BuiltinOptions) > 0 && (f.Url != "" || command != nil):
		return t, nil, exit.Usagef("--option is for built-in servers; write what the server takes behind its command")
	case f.Url != "" && command != nil:
		return t, nil, exit.Usagef("the server is named twice: by --url and by the command after --")
	case f.Url != "":
		t, err = f.ByURL()
		return t, words, err
	case command != nil:
		t, err = f.Started(command)
		return t, words, err
	case len(words) == 0 && cmd.Annotations[TakesAll] != "":
		return f.Directory().newGatewayTarget(f.showStatus(cmd)), nil, f.Directory().silent
	case len(words) == 0:
		return t, nil, exit.Usagef("no server is named: write one of %s, --url URL, or its command after --",
			strings.Join(f.Directory().Known(), ", "))
	}
	name, thing, err := SplitName(words[0], f.Directory().Known())
	if err != nil {
		return t, nil, err
	}
	if thing != "" {
		rest = []string{thing}
	}
	t, err = f.ByName(name)
	return t, append(rest, words[1:]...), err
}

// SplitName splits SERVER.THING or SERVER. Names of servers may contain dots, so the longest known
// name that fits wins. It also accepts SERVER__THING, the form on the wire.
func SplitName(word string, known []string) (name, thing string, err error) {
	for _, k := range known {
		if (word == k || strings.HasPrefix(word, k+".")) && len(k) > len(name) {
			name = k
		}
	}
	if name != "" {
		return name, strings.TrimPrefix(word[len(name):], "."), nil
	}
	for _, k := range known { // the form on the wire
		if strings.HasPrefix(word, k+"__") && len(k) > len(name) {
			name = k
		}
	}
	if name != "" {
		return name, word[len(name)+len("__"):], nil
	}
	wanted, _, _ := strings.Cut(word, ".")
	return "", "", exit.Usagef("no server is called %s (one that has no name here is given by its command: dowel … -- COMMAND)%s",
		wanted, suggest.Hint(wanted, known))
}

// TakesAll is an annotation of commands that use all servers if the command line names no server.
const TakesAll = "takes all"

// Directory returns the directory of servers. It reads the directory at the first call.
func (f *TargetFlags) Directory() *Directory {
	if f.Found == nil {
		f.Found = ReadDirectory(AnswerTimeout)
	}
	return f.Found
}

// ByName returns the server with the given name: from the directory, or else built in. With
// --option it is always built in.
func (f *TargetFlags) ByName(name string) (Target, error) {
	if t, ok, err := f.Directory().findTarget(name); ok && len(f.BuiltinOptions) == 0 {
		if err == nil && (len(f.Env) > 0 || f.Dir != "") {
			err = exit.Usagef("--env and --dir are for servers that are started here; %s comes from %s", name, t.Origin)
		}
		return t, err
	}
	return f.BuiltIn(name)
}

// BuiltIn returns a built-in server. It runs as a child process of the same binary.
func (f *TargetFlags) BuiltIn(name string) (Target, error) {
	self, err := os.Executable()
	if err != nil {
		return Target{}, fmt.Errorf("dowel cannot find itself to start %s: %w", name, err)
	}
	options, err := builtin.ParseOptions(f.BuiltinOptions)
	if err == nil {
		err = builtin.Check(name, options)
	}
	if err != nil {
		return Target{}, exit.UsageError{Err: err}
	}
	command := append([]string{self, "serve", name}, f.BuiltinOptions...)
	if keys := f.joinModelKeys(); name == "shell" && keys != "" && options["keys"] == "" {
		command = append(command, "keys="+keys)
	}
	t, err := f.Started(command)
	t.Name, t.Origin = name, "built into dowel"
	if child, ok := t.Dial.(stdio.Command); ok && name == "shell" {
		passModelKeys(child.Env, options["keys"])
	}
	return t, err
}

// passModelKeys adds the model keys that a shell server is to hand on, separated by commas, to its
// environment, because processes do not inherit them.
func passModelKeys(env map[string]string, keys string) {
	for name := range strings.SplitSeq(keys, ",") {
		if _, given := env[name]; given || !slices.Contains(shell.ModelKeys, name) {
			continue
		}
		if value, ok := modelkeys.LookupEnv(name); ok {
			env[name] = value
		}
	}
}

// joinModelKeys returns the variables of model keys that --env sets, separated by commas. The shell
// server withholds other model keys from its commands.
func (f *TargetFlags) joinModelKeys() string {
	var set []string
	for _, setting := range f.Env {
		if key, _, ok := strings.Cut(setting, "="); ok && slices.Contains(shell.ModelKeys, key) {
			set = append(set, key)
		}
	}
	return strings.Join(set, ",")
}

// ByURL returns the server at --url.
func (f *TargetFlags) ByURL() (Target, error) {
	if len(f.Env) > 0 || f.Dir != "" {
		return Target{}, exit.Usagef("--env and --dir are for servers that are started; %s runs already", secretmask.Text(f.Url))
	}
	u, err := url.Parse(f.Url)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
		return Target{}, exit.Usagef("--url %s: write a URL such as http://127.0.0.1:8080/mcp or ws://127.0.0.1:8080/ws", secretmask.URL(f.Url))
	}
	header, err := f.parseHeaders()
	if err == nil {
		addOwnToken(u, header)
	}
	if err != nil {
		return Target{}, err
	}
	t := Target{Origin: secretmask.Text(u.String()), Dial: f.Url, Header: header}
	if header.Get("Authorization") == "" && u.User == nil {
		login, err := configured.NewURLLogin(f.Url, factory.OpenLogins(func(error) {}), nil)
		if err != nil {
			return Target{}, exit.Usagef("--url %s: %w", secretmask.URL(f.Url), err)
		}
		t.Options.HTTP.Client = &http.Client{Transport: login}
	}
	return t, nil
}

// parseHeaders parses the values of --header.
func (f *TargetFlags) parseHeaders() (http.Header, error) {
	h := http.Header{}
	for _, field := range f.Headers {
		name, value, ok := strings.Cut(field, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsFunc(name, unicode.IsSpace) || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, exit.Usagef("--header %q: write 'Name: value'", secretmask.Text(field))
		}
		h.Add(name, value)
	}
	return h, nil
}

// Started returns a server that is started by its command, with the environment and folder of the
// flags.
func (f *TargetFlags) Started(command []string) (Target, error) {
	env := map[string]string{}
	for _, setting := range f.Env {
		key, value, ok := strings.Cut(setting, "=")
		if !ok || key == "" {
			return Target{}, exit.Usagef("--env %s: write KEY=VALUE", setting)
		}
		env[key] = value
	}
	return Target{
		Origin: term.Line(strings.Join(secretmask.Args(command), " ")),
		Dial:   stdio.Command{Path: command[0], Args: slices.Clone(command[1:]), Env: env, Dir: f.Dir},
	}, nil
}

// Folder returns the absolute path of a folder. It returns an error if the folder does not exist.
func Folder(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(absolute)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	return absolute, err
}

// showStatus returns a function that shows work in progress, on the command's stderr.
func (f *TargetFlags) showStatus(cmd *cobra.Command) func(string) {
	screen, ok := cmd.ErrOrStderr().(*term.Screen)
	if !ok || !screen.IsTerminal() {
		return func(string) {}
	}
	return func(text string) { screen.SetStatus(screen.Dim(text)) }
}
