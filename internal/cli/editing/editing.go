// Package editing changes configuration files for commands: it edits the smallest span of text,
// keeps a copy, shows the change before it is made with --dry-run, and tells the running daemon to
// read the files again.
package editing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/draft"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/control"
)

// EditFile changes a configuration file and shows the result. change gets the current text, empty
// if the file is missing, and returns the new one. With dry, EditFile writes nothing and shows the
// change. With backup, it keeps a copy of the old file.
func EditFile(f *factory.Factory, path string, dry, backup bool, change func(text []byte, format edit.Format) ([]byte, error)) error {
	if dry {
		return PreviewEdit(f, path, change)
	}
	result, err := WriteEdit(path, backup, change)
	switch {
	case err != nil:
		return err
	case f.JSON:
		return f.WriteValue(map[string]any{"file": path, "changed": result.Changed, "backup": result.Backup})
	}
	ShowWritten(f, path, result)
	return nil
}

// PreviewEdit shows the change that an edit would make. It writes nothing.
func PreviewEdit(f *factory.Factory, path string, change func(text []byte, format edit.Format) ([]byte, error)) error {
	format, err := lookupFormat(path)
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
	return ShowChange(f, path, draft.MaskText(path, old), draft.MaskText(path, text))
}

// lookupFormat returns the format of a file by its name.
func lookupFormat(path string) (edit.Format, error) {
	format, ok := edit.FormatOf(path)
	if !ok {
		return format, exit.Usagef("%s: want a JSON, YAML or TOML file", path)
	}
	return format, nil
}

// WriteEdit changes a configuration file like [EditFile], and shows nothing. If it fails, the file
// is unchanged.
func WriteEdit(path string, backup bool, change func(text []byte, format edit.Format) ([]byte, error)) (atomicfile.Result, error) {
	format, err := lookupFormat(path)
	if err != nil {
		return atomicfile.Result{}, err
	}
	result, err := atomicfile.Update(path, func(old []byte, _ bool) ([]byte, error) { return change(old, format) },
		atomicfile.Options{Perm: 0o600, Backup: backup})
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return result, fmt.Errorf("%s is unchanged: %w: make it writable, or name another file with --config", path, err)
	case err != nil:
		return result, fmt.Errorf("%s is unchanged: %w", path, err)
	}
	return result, nil
}

// ShowWritten shows the result of [WriteEdit] to a person.
func ShowWritten(f *factory.Factory, path string, result atomicfile.Result) {
	switch {
	case !result.Changed:
		f.WriteMessage("%s is up to date already.", path)
	case result.Backup != "":
		f.WriteMessage("Written: %s; the old file is %s", path, result.Backup)
	default:
		f.WriteMessage("Written: %s", path)
	}
}

// ShowChange shows the lines that differ between before and after.
func ShowChange(f *factory.Factory, path, before, after string) error {
	if f.JSON {
		return f.WriteValue(map[string]any{"file": path, "before": before, "after": after})
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Bold(path))
	old, new := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(old) > 0 && len(new) > 0 && old[0] == new[0] {
		old, new = old[1:], new[1:]
	}
	for len(old) > 0 && len(new) > 0 && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	for _, text := range old {
		if text != "" || len(old) > 1 {
			fmt.Fprintln(f.Stdout, f.Stdout.Red("- "+text))
		}
	}
	for _, text := range new {
		fmt.Fprintln(f.Stdout, f.Stdout.Green("+ "+text))
	}
	return nil
}

// ReloadDaemon makes the running daemon read its files again. It returns false if no daemon runs,
// and warns of other errors.
func ReloadDaemon(ctx context.Context, f *factory.Factory) bool {
	err := factory.RunningDaemon().Reload(ctx)
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
		f.Warn("%v", err)
	}
	return !errors.Is(err, control.ErrNotRunning)
}

// ToolNames returns the names of the other tools that dowel can import from and export to.
func ToolNames() (names []string) {
	for _, d := range config.Dialects() {
		if d.Name != config.Own {
			names = append(names, d.Name)
		}
	}
	return names
}
