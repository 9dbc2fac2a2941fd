package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/spf13/cobra"
)

// editFile changes a configuration file in the smallest span of text, keeps everything else, and says so. With dry it shows
// what would change. change returns the new text.
func (a *app) editFile(path string, dry, backup bool, change func(text []byte, f edit.Format) ([]byte, error)) error {
	if dry {
		return a.tryEdit(path, change)
	}
	result, err := writeEdit(path, backup, change)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.value(map[string]any{"file": path, "changed": result.Changed, "backup": result.Backup})
	}
	a.showWritten(path, result)
	return nil
}

// tryEdit shows what an edit would change.
func (a *app) tryEdit(path string, change func(text []byte, f edit.Format) ([]byte, error)) error {
	format, err := formatOf(path)
	if err != nil {
		return err
	}
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

func formatOf(path string) (edit.Format, error) {
	format, ok := edit.FormatOf(path)
	if !ok {
		return format, usagef("%s is neither JSON nor YAML nor TOML", path)
	}
	return format, nil
}

func writeEdit(path string, backup bool, change func(text []byte, f edit.Format) ([]byte, error)) (atomicfile.Result, error) {
	format, err := formatOf(path)
	if err != nil {
		return atomicfile.Result{}, err
	}
	result, err := atomicfile.Update(path, func(old []byte, _ bool) ([]byte, error) { return change(old, format) },
		atomicfile.Options{Perm: 0o600, Backup: backup})
	if err != nil {
		return result, fmt.Errorf("%s is left as it was: %w", path, err)
	}
	return result, nil
}

func (a *app) showWritten(path string, result atomicfile.Result) {
	switch {
	case !result.Changed:
		fmt.Fprintln(a.stdout, path+" says so already.")
	case result.Backup != "":
		fmt.Fprintln(a.stdout, "Written: "+path+"; what was there before is in "+result.Backup)
	default:
		fmt.Fprintln(a.stdout, "Written: "+path)
	}
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

// ownFile returns the user's own file: the one of --config, else the one that is there, else dowel.json.
func ownFile(o config.Options) string {
	if len(o.Files) > 0 {
		return o.Files[0]
	}
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

func (a *app) removeCommand() *cobra.Command {
	var where places
	var dry bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a server from the file that it stands in", Args: cobra.ExactArgs(1), ValidArgsFunction: completeNames,
		Long: `Remove a server from the file whose entry counts: a project's before yours. Everything else in the file stays as it is, and a
copy of it is kept. An entry of the same name in another file comes into force then.`,
		Example: "  dowel servers remove github --dry-run\n  dowel servers remove github",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.began = true
			return a.remove(cmd.Context(), args[0], where, dry)
		},
	}
	where.register(cmd)
	cmd.Flags().Lookup("config").Usage = "remove it from this `file`, and read no others (repeatable: from the first that has it)"
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
		if actsHere(name) {
			return usagef("%s is built into dowel and stands in no file; nothing starts it but a command that names it", name)
		}
		if slices.Contains(builtin.Names(), name) {
			return usagef("%s is built into dowel and stands in no file; it can be switched off with dowel servers disable %[1]s", name)
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
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return nil
			}
			if tool := nearest(words[0], dialectNames()); tool != "" {
				return usagef("the tool stands behind --to; did you mean dowel export --to %s?", tool)
			}
			return usagef("%q is too much: write dowel export --to TOOL%s", words[0], suggestion(words[0], dialectNames()))
		},
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
	err = a.editFile(home(d, o), dry, true, func(text []byte, f edit.Format) ([]byte, error) {
		return edit.Set(text, f, transfer.Path(d, name), transfer.Command(d, name, self, "up", "--stdio"))
	})
	if err != nil || dry || a.json {
		return err
	}
	if twice := stays(home(d, o), to, name, o); twice != "" {
		fmt.Fprintln(a.stdout, twice)
	}
	return nil
}

// installed returns where dowel is, for others to start it.
func installed() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return lasting(self)
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
