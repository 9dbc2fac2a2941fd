package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/config"
	"github.com/dowel-mcp/dowel/config/edit"
	"github.com/dowel-mcp/dowel/config/transfer"
	"github.com/dowel-mcp/dowel/hub/control"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/spf13/cobra"
)

// editFile changes a configuration file in the smallest span of text, and keeps everything else. With dry it shows what
// would change. change returns the new text.
func (a *app) editFile(path string, dry, backup bool, change func(text []byte, f edit.Format) ([]byte, error)) error {
	format, ok := edit.FormatOf(path)
	if !ok {
		return usagef("%s is neither JSON nor YAML nor TOML", path)
	}
	if dry {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		text, err := change(old, format)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return a.showChange(path, string(old), string(text))
	}
	result, err := atomicfile.Update(path, func(old []byte, _ bool) ([]byte, error) { return change(old, format) },
		atomicfile.Options{Perm: 0o600, Backup: backup})
	if err != nil {
		return fmt.Errorf("%s is left as it was: %w", path, err)
	}
	switch {
	case a.json:
		return a.value(map[string]any{"file": path, "changed": result.Changed, "backup": result.Backup})
	case !result.Changed:
		fmt.Fprintln(a.stdout, path+" says so already.")
	case result.Backup != "":
		fmt.Fprintln(a.stdout, "Written: "+path+"; what was there before is in "+result.Backup)
	default:
		fmt.Fprintln(a.stdout, "Written: "+path)
	}
	return nil
}

// showChange shows the lines that an edit would remove and add.
func (a *app) showChange(path, before, after string) error {
	if a.json {
		return a.value(map[string]any{"file": path, "before": before, "after": after})
	}
	fmt.Fprintln(a.stdout, a.stdout.bold(path))
	old, new := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(old) > 0 && len(new) > 0 && old[0] == new[0] {
		old, new = old[1:], new[1:]
	}
	for len(old) > 0 && len(new) > 0 && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	for _, text := range old {
		if text != "" || len(old) > 1 {
			fmt.Fprintln(a.stdout, a.stdout.red("- "+text))
		}
	}
	for _, text := range new {
		fmt.Fprintln(a.stdout, a.stdout.green("+ "+text))
	}
	return nil
}

// ownFile returns the user's own file: the one that is there, else dowel.json.
func ownFile(o config.Options) string {
	for _, f := range config.Load(o).Files {
		if f.Dialect == config.Own && f.Scope == config.User && !f.Missing {
			return f.Path
		}
	}
	return filepath.Join(o.Dir(), "dowel.json")
}

// tell lets the running dowel, if there is one, read its files again.
func (a *app) tell(ctx context.Context) {
	if err := running().Reload(ctx); err != nil && !errors.Is(err, control.ErrNotRunning) {
		a.warn("%v", err)
	}
}

func (a *app) addCommand() *cobra.Command {
	var w whence
	var where places
	var dry bool
	cmd := &cobra.Command{
		Use:   "add NAME (-- COMMAND… | --url URL)",
		Short: "Add a server to your dowel.json",
		Long: `Add a server to your own dowel.json: by its command behind --, or by its --url. Variables such as ${TOKEN} stay variables,
so write them instead of secrets, in quotes. A running dowel starts the server at once.`,
		Example: `  dowel servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  dowel servers add docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.began = true
			return a.add(cmd, args, w, where, dry)
		},
	}
	w.register(cmd)
	where.register(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

func (a *app) add(cmd *cobra.Command, args []string, w whence, where places, dry bool) error {
	o, err := where.config()
	if err != nil {
		return err
	}
	t, rest, err := w.aimNew(cmd, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 || rest[0] == "" {
		return usagef("write one name for the server: dowel servers add NAME -- COMMAND…")
	}
	if s := config.Load(o).Server(rest[0]); s != nil {
		return usagef("there is a server called %s already: %s", rest[0], s.At)
	}
	err = a.editFile(ownFile(o), dry, false, func(text []byte, f edit.Format) ([]byte, error) {
		return edit.Set(text, f, []string{"mcpServers", rest[0]}, t)
	})
	if err == nil && !dry {
		a.tell(cmd.Context())
	}
	return err
}

// aimNew reads a server that is to be added: its entry, and the words that are left.
func (w *whence) aimNew(cmd *cobra.Command, args []string) (entry edit.Object, rest []string, err error) {
	words, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, command = args[:dash], args[dash:]
	}
	s := &config.Server{}
	switch {
	case (w.url != "") == (len(command) > 0):
		return nil, nil, usagef("say how the server is reached: by its command behind --, or by --url")
	case w.url != "":
		if _, err := w.byURL(); err != nil {
			return nil, nil, err
		}
		s.Kind, s.URL, s.Headers = config.Auto, w.url, map[string]string{}
		for _, field := range w.headers {
			name, value, _ := strings.Cut(field, ":")
			s.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	default:
		if _, err := w.started(command); err != nil {
			return nil, nil, err
		}
		s.Kind, s.Command, s.Args, s.Dir, s.Env = config.Stdio, command[0], command[1:], w.dir, map[string]string{}
		for _, setting := range w.env {
			name, value, _ := strings.Cut(setting, "=")
			s.Env[name] = value
		}
	}
	return transfer.Entry(s, ""), words, nil
}

func (a *app) removeCommand() *cobra.Command {
	var where places
	var dry bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a server from the file that it stands in", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.began = true
			return a.remove(cmd.Context(), args[0], where, dry)
		},
	}
	where.register(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be removed, and write nothing")
	return cmd
}

func (a *app) remove(ctx context.Context, name string, where places, dry bool) error {
	o, err := where.config()
	if err != nil {
		return err
	}
	set := config.Load(o)
	s := set.Server(name)
	if s == nil {
		var names []string
		for _, known := range set.Servers {
			names = append(names, known.Name)
		}
		return usagef("no server of the configuration is called %s%s", name, suggestion(name, names))
	}
	d, err := config.LookupDialect(s.Dialect)
	if err != nil {
		return err
	}
	err = a.editFile(s.Path, dry, true, func(text []byte, f edit.Format) ([]byte, error) {
		return edit.Remove(text, f, transfer.Path(d, name))
	})
	if err == nil && !dry {
		a.tell(ctx)
	}
	return err
}

func (a *app) exportCommand() *cobra.Command {
	var to, name string
	var where places
	var dry bool
	cmd := &cobra.Command{
		Use:   "export --to TOOL",
		Short: "Make dowel the MCP server of another tool: one entry for all your servers",
		Long: `Write one entry into another tool's configuration, which starts dowel up --stdio: all your servers, as one. Everything else
in the file stays as it is, and a copy of it is kept. The tools are:

  ` + strings.Join(wrap(dialectNames(), 100), "\n  "),
		Example: `  dowel export --to cursor --dry-run
  dowel export --to claude-code`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			return a.export(where, to, name, dry)
		},
	}
	where.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the `tool`")
	cmd.Flags().StringVar(&name, "name", "dowel", "the `name` of the entry")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

// dialectNames are the tools that dowel knows, but itself.
func dialectNames() (names []string) {
	for _, d := range config.Dialects() {
		if d.Name != config.Own {
			names = append(names, d.Name)
		}
	}
	return names
}

func (a *app) export(where places, to, name string, dry bool) error {
	if to == "" || !slices.Contains(dialectNames(), to) {
		return usagef("--to: which tool?%s", suggestion(to, dialectNames()))
	}
	o, err := where.config()
	if err != nil {
		return err
	}
	d, err := config.LookupDialect(to)
	if err != nil {
		return err
	}
	self, err := installed()
	if err != nil {
		return err
	}
	return a.editFile(home(d, o), dry, true, func(text []byte, f edit.Format) ([]byte, error) {
		return edit.Set(text, f, transfer.Path(d, name), transfer.Command(d, name, self, "up", "--stdio"))
	})
}

// installed returns where dowel is, for others to start it.
func installed() (string, error) {
	self, err := os.Executable()
	if err != nil || !strings.Contains(filepath.ToSlash(self), "/go-build") || filepath.Base(filepath.Dir(self)) != "exe" {
		return self, err
	}
	if found, err := exec.LookPath("dowel"); err == nil { // this one, of go run, is gone when it ends
		return filepath.Abs(found)
	}
	return "", usagef("dowel is not installed, and what go run has built is gone when it ends: go install ./cmd/dowel, and run that")
}

// home returns the tool's own file of the user: one that is there, else the usual one.
func home(d config.Dialect, o config.Options) string {
	all := d.Places(o)
	for _, p := range all {
		if _, err := os.Stat(p.Path); err == nil && p.Scope == config.User {
			return p.Path
		}
	}
	return all[0].Path
}
