package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

func addCommand(f *factory.Factory) *cobra.Command {
	var w connect.TargetFlags
	var where factory.Places
	var dry bool
	cmd := &cobra.Command{
		Use:   "add NAME [-- COMMAND… | --url URL]",
		Short: "Add a server to your dowel.json",
		Long: `Add a server to your own dowel.json: by its command behind --, or by its --url; one that is built into dowel by its name, with
its options. Variables such as ${TOKEN} stay variables, so write them instead of secrets, in quotes. A running dowel starts
the server at once, and what has come of that is told.

The servers that are built into dowel are started by themselves while no file of yours has a place for servers; with your
first one they are not any more.`,
		Example: `  dowel servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  dowel servers add docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'
  dowel servers add kv -O memory=true`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return addServer(f, cmd, args, w, where, dry)
		},
	}
	w.AddFlags(cmd)
	where.AddFlags(cmd)
	cmd.Flags().Lookup("config").Usage = "write into this `file` instead of your own dowel.json"
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

func addServer(f *factory.Factory, cmd *cobra.Command, args []string, w connect.TargetFlags, where factory.Places, dry bool) error {
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	name, entry, err := parseNewServer(&w, cmd, args)
	if err != nil {
		return err
	}
	set := config.Load(o)
	if s := set.Server(name); s != nil {
		return exit.Usagef("there is a server called %s already: %s", name, s.At)
	}
	if err := checkEditable(set, o); err != nil {
		return err
	}
	change := func(text []byte, format edit.Format) ([]byte, error) {
		return edit.Set(text, format, []string{"mcpServers", name}, entry)
	}
	path := editing.UserFile(o)
	warnings := nameWarnings(name)
	if dry {
		for _, text := range warnings {
			f.Warn("%s", text)
		}
		return editing.PreviewEdit(f, path, change)
	}
	result, err := editing.WriteEdit(path, false, change)
	if err != nil {
		return err
	}
	added := Addition{File: path, Changed: result.Changed, Warnings: warnings}
	if len(o.Files) == 0 && usesBuiltIn(set) {
		added.Notes = append(added.Notes, fmt.Sprintf("the servers that are built into dowel (%s) are not started by themselves any more, now that you have one of your own; keep one with dowel servers add, such as dowel servers add %s",
			strings.Join(daemon.DefaultServers(), ", "), otherBuiltIn(name)))
	}
	if !f.JSON {
		editing.ShowWritten(f, path, result)
	}
	return showAddition(cmd.Context(), f, name, added)
}

// checkEditable complains of a file of --config into which an entry of dowel's own would not fit.
func checkEditable(set *config.Set, o config.Options) error {
	if len(o.Files) == 0 {
		return nil
	}
	if len(o.Files) > 1 {
		return exit.Usagef("--config: write into one file")
	}
	for _, file := range set.Files {
		d, err := config.LookupDialect(file.Dialect)
		if file.Dialect != "" && err == nil && !slices.Equal(d.Key, []string{"mcpServers"}) {
			return exit.Usagef("--config: %s is a file of %s, which writes servers in another way; see dowel import and dowel export", file.Path, d.Title)
		}
	}
	return nil
}

// otherBuiltIn is a built-in server of another name.
func otherBuiltIn(name string) string {
	names := daemon.DefaultServers()
	return names[slices.IndexFunc(names, func(other string) bool { return other != name })]
}

// Addition is what has come of an added server, as a program reads it.
type Addition struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Outcome
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// showAddition lets the running dowel, if there is one, read its files again, and tells what has come of the server.
func showAddition(ctx context.Context, f *factory.Factory, name string, added Addition) error {
	added.Server, added.Did = name, "add"
	now, err := awaitAdded(ctx, f, name, &added.Outcome)
	if err != nil {
		return err
	}
	if f.JSON {
		return f.WriteValue(added)
	}
	for _, text := range added.Warnings {
		f.Warn("%s", text)
	}
	fmt.Fprintln(f.Stdout, term.Line(name)+": "+now)
	for _, text := range added.Notes {
		fmt.Fprintln(f.Stdout, "Note: "+text)
	}
	return nil
}

// awaitAdded waits for what a running dowel makes of a new server, and says it.
func awaitAdded(ctx context.Context, f *factory.Factory, name string, o *Outcome) (now string, err error) {
	err = factory.RunningDaemon().Reload(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return "no dowel is running; dowel up starts it, dowel doctor " + name + " tries it", nil
	}
	o.Running = true
	if err != nil {
		f.Warn("%v", err)
	}
	s, err := awaitSettled(ctx, name)
	if errors.Is(err, control.ErrNoServer) {
		return "the running dowel does not have it, since it reads other files; see dowel status", nil
	}
	o.Status, o.Cause, o.Problem, o.Advice = s.Status, s.Cause, s.Problem, s.Advice
	return describeState(s), err
}

// plainName is a name that stays as it is in the names of tools.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]*[A-Za-z0-9-]$`)

// nameWarnings warns of a name that does not read well on the wire.
func nameWarnings(name string) []string {
	if plainName.MatchString(name) && !strings.Contains(name, "__") && name != "dowel" {
		return nil
	}
	return []string{fmt.Sprintf("the name %q does not read well: in the names of tools, which hold letters, digits, - and single _ alone, it stands in another form, with a mark", name)}
}

// parseNewServer reads a server that is to be added: its name and entry.
func parseNewServer(w *connect.TargetFlags, cmd *cobra.Command, args []string) (name string, entry edit.Object, err error) {
	words, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, command = args[:dash], args[dash:]
	}
	switch {
	case len(words) == 0 || words[0] == "" || strings.ContainsFunc(words[0], func(r rune) bool { return r < ' ' }):
		return "", nil, exit.Usagef("write a name for the server: dowel servers add NAME -- COMMAND…")
	case len(words) > 1 && len(command) == 0 && w.Url == "":
		return "", nil, exit.Usagef("put the server's command behind --: dowel servers add %s -- %s", words[0], strings.Join(words[1:], " "))
	case len(words) > 1:
		return "", nil, exit.Usagef("write one name for the server, and not %s", strings.Join(words, " "))
	}
	name = words[0]
	s := &config.Server{}
	switch builtIn := slices.Contains(builtin.Names(), name); {
	case w.Url != "" && len(command) > 0:
		return "", nil, exit.Usagef("the server is named twice: by --url and by the command behind --")
	case len(w.BuiltinOptions) > 0 && (w.Url != "" || len(command) > 0):
		return "", nil, exit.Usagef("--option is for built-in servers; write what the server takes behind its command")
	case w.Url != "":
		err = fillURLEntry(w, s)
	case len(command) > 0:
		err = fillCommandEntry(w, s, command)
	case builtIn:
		err = fillBuiltInEntry(w, s, name)
	default:
		err = exit.Usagef("say how %s is reached: by its command behind --, or by --url; built in are %s", name, strings.Join(builtin.Names(), ", "))
	}
	return name, transfer.Entry(s, ""), err
}

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

// fillBuiltInEntry is that of a server of this binary, which is started as others are.
func fillBuiltInEntry(w *connect.TargetFlags, s *config.Server, name string) error {
	options, err := builtin.ParseOptions(w.BuiltinOptions)
	if err == nil {
		err = builtin.Check(name, options)
	}
	if err != nil {
		return exit.UsageError{Err: err}
	}
	self, err := editing.InstalledPath()
	if err != nil {
		return err
	}
	words := w.BuiltinOptions
	if w.Dir == "" { // paths mean the folder of this command, not of dowel up
		folder, err := os.Getwd()
		if err != nil {
			return err
		}
		words = builtin.Anchored(name, words, folder)
	}
	return fillCommandEntry(w, s, append([]string{self, "serve", name}, words...))
}
