package exportcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
)

// removeExport removes the entry that dowel export wrote to a tool's file. It refuses an entry that
// has been changed since.
func removeExport(f *factory.Factory, d config.Dialect, file string, opts *options) error {
	found := false
	remove := func(text []byte, format edit.Format) ([]byte, error) {
		var err error
		if found, err = findExport(d, file, opts.name, text, format); err != nil || !found {
			return text, err
		}
		return edit.Remove(text, format, transfer.Path(d, opts.name))
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if format, ok := edit.FormatOf(file); ok && err == nil {
		if _, err := remove(text, format); err != nil {
			return fmt.Errorf("%s is unchanged: %w", file, err)
		}
	}
	switch {
	case !found && f.JSON:
		return f.WriteValue(map[string]any{"file": file, "changed": false, "backup": ""})
	case !found:
		f.WriteMessage("Nothing to remove: %s has no entry %q for dowel.", file, opts.name)
		return nil
	}
	if err := editing.EditFile(f, file, opts.dry, true, remove); err != nil || opts.dry || f.JSON {
		return err
	}
	f.WriteMessage("%s no longer starts dowel: its server %q is removed. Start %[1]s again, or let it reload its servers.", d.Title, opts.name)
	return nil
}

// findExport reports whether text has an entry as dowel export writes it. Its program may be
// another dowel. err says that the entry is a different one.
func findExport(d config.Dialect, file, name string, text []byte, format edit.Format) (bool, error) {
	path := transfer.Path(d, name)
	if _, ok, err := edit.Lookup(text, format, path); err != nil || !ok {
		return false, err
	}
	for _, s := range config.ServersIn(file, text) {
		if s.Name != name || !isDowel(s.Command) {
			continue
		}
		same, err := edit.Set(text, format, path, transfer.Command(d, name, s.Command, "up", "--stdio"))
		if err == nil && bytes.Equal(same, text) {
			return true, nil
		}
	}
	return false, fmt.Errorf("its server %q is not as dowel export wrote it; remove it by hand, or name another with --name", name)
}

// isDowel reports whether a command is this program or is named dowel.
func isDowel(command string) bool {
	self, err := os.Executable()
	return err == nil && command == self || strings.TrimSuffix(filepath.Base(command), ".exe") == "dowel"
}
