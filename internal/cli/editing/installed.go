package editing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
)

// InstalledPath returns the path at which other programs can start dowel. If this program is
// temporary, such as under go run, and no other dowel is installed, it saves a copy of this program
// and says so; with dry it only says so.
func InstalledPath(f *factory.Factory, dry bool) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if path := permanentPath(self); path != "" {
		return path, nil
	}
	dir := factory.StateDir()
	if dir == "" {
		return "", errors.New("dowel runs as a temporary file, and there is no folder to save a copy in: install it with go install ./cmd/dowel")
	}
	path := filepath.Join(dir, "bin", "dowel")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if dry {
		f.Notice("dowel runs as a temporary file, so it would save a copy for other programs: " + path)
		return path, nil
	}
	if err := copyProgram(self, path); err != nil {
		return "", fmt.Errorf("dowel runs as a temporary file, and saving a copy failed: %w", err)
	}
	f.Notice("dowel runs as a temporary file, so it has saved a copy for other programs: " + path)
	return path, nil
}

// permanentPath returns self, the path of this program, unless it is temporary. Then it returns the
// dowel on the PATH, or "" without one that stays.
func permanentPath(self string) string {
	if !isTemporary(self) {
		return self
	}
	if found, err := exec.LookPath("dowel"); err == nil {
		if found, err = filepath.Abs(found); err == nil && !isTemporary(found) {
			return found
		}
	}
	return ""
}

// copyProgram copies a program to a path. A copy that is running keeps its file.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), "dowel-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	_, err = io.Copy(out, in)
	if closing := out.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(out.Name(), 0o700)
	}
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	return err
}

// isTemporary reports whether a program will soon be deleted: go run built it, in a folder of its
// own or in Go's cache, or it is in the folder for temporary files.
func isTemporary(program string) bool {
	parts := strings.Split(filepath.ToSlash(filepath.Dir(program)), "/")
	if i := slices.IndexFunc(parts, func(part string) bool { return strings.HasPrefix(part, "go-build") }); i >= 0 {
		return parts[i] == "go-build" || parts[len(parts)-1] == "exe" // otherwise go test built it
	}
	for _, folder := range []string{os.TempDir(), os.Getenv("GOCACHE")} {
		if rest, err := filepath.Rel(folder, program); folder != "" && err == nil && filepath.IsLocal(rest) {
			return true
		}
	}
	return false
}
