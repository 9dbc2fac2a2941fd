// Package editing changes configuration files for commands: it edits the smallest span of text,
// keeps a copy, shows the change before it is made with --dry-run, and tells the running daemon to
// read the files again.
package editing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/control"
)

// EditFile changes a configuration file in the smallest span of text, keeps everything else, and says so. With dry it shows
// what would change. change returns the new text.
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

// PreviewEdit shows what an edit would change.
func PreviewEdit(a *factory.Factory, path string, change func(text []byte, format edit.Format) ([]byte, error)) error {
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
	return ShowChange(a, path, string(old), string(text))
}

func lookupFormat(path string) (edit.Format, error) {
	format, ok := edit.FormatOf(path)
	if !ok {
		return format, exit.Usagef("%s is neither JSON nor YAML nor TOML", path)
	}
	return format, nil
}

func WriteEdit(path string, backup bool, change func(text []byte, format edit.Format) ([]byte, error)) (atomicfile.Result, error) {
	format, err := lookupFormat(path)
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

func ShowWritten(f *factory.Factory, path string, result atomicfile.Result) {
	switch {
	case !result.Changed:
		fmt.Fprintln(f.Stdout, path+" says so already.")
	case result.Backup != "":
		fmt.Fprintln(f.Stdout, "Written: "+path+"; what was there before is in "+result.Backup)
	default:
		fmt.Fprintln(f.Stdout, "Written: "+path)
	}
}

// ShowChange shows the lines that an edit would remove and add.
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

// UserFile returns the user's own file: the one of --config, else the one that is there, else dowel.json.
func UserFile(o config.Options) string {
	if len(o.Files) > 0 {
		return o.Files[0]
	}
	for _, file := range config.Load(o).Files {
		if file.Dialect == config.Own && file.Scope == config.User && !file.Missing {
			return file.Path
		}
	}
	return filepath.Join(o.Dir(), "dowel.json")
}

// ReloadDaemon lets the running dowel, if there is one, read its files again.
func ReloadDaemon(ctx context.Context, f *factory.Factory) {
	if err := factory.RunningDaemon().Reload(ctx); err != nil && !errors.Is(err, control.ErrNotRunning) {
		f.Warn("%v", err)
	}
}

// ToolNames are the tools that dowel knows, but itself.
func ToolNames() (names []string) {
	for _, d := range config.Dialects() {
		if d.Name != config.Own {
			names = append(names, d.Name)
		}
	}
	return names
}

// InstalledPath returns where dowel is, for others to start it.
func InstalledPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return permanentPath(self)
}

// permanentPath returns where others can start dowel, which runs as the program self: there, or where it is installed if self will
// be gone soon.
func permanentPath(self string) (string, error) {
	if !isTemporary(self) {
		return self, nil
	}
	others := "no dowel is on your PATH"
	if found, err := exec.LookPath("dowel"); err == nil {
		if found, err = filepath.Abs(found); err == nil && !isTemporary(found) {
			return found, nil
		}
		others = "the dowel on your PATH stands in a folder for temporary files, too"
	}
	return "", exit.Usagef("dowel runs as %s, which will be gone soon, and %s: install it (go install ./cmd/dowel, or go build -o a folder that stays), and run that", self, others)
}

// isTemporary reports whether a program will be gone soon: what go run has built, in a folder of its own or in go's cache, and
// what is in a folder for temporary files.
func isTemporary(program string) bool {
	parts := strings.Split(filepath.ToSlash(filepath.Dir(program)), "/")
	if i := slices.IndexFunc(parts, func(part string) bool { return strings.HasPrefix(part, "go-build") }); i >= 0 {
		return parts[i] == "go-build" || parts[len(parts)-1] == "exe" // else it is a test
	}
	for _, folder := range []string{os.TempDir(), os.Getenv("GOCACHE")} {
		if rest, err := filepath.Rel(folder, program); folder != "" && err == nil && filepath.IsLocal(rest) {
			return true
		}
	}
	return false
}
