package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// scripts are the extensions that need no execute permission because an interpreter reads the file;
// see [stdio.Command].
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".php", ".sh", ".jar"}

func isScript(name string) bool { return slices.Contains(scripts, strings.ToLower(filepath.Ext(name))) }

// findProgram returns the file that the command's Path names. Its error for a missing program is
// the error of starting the command.
func findProgram(ctx context.Context, c *stdio.Command) (string, error) {
	if isPath(c.Path) {
		return checkExecutable(ctx, absoluteIn(c.Dir, c.Path))
	}
	if file := lookUpProgram(c); file != "" {
		return file, nil
	}
	return process.Resolve(ctx, c.Path)
}

// lookUpProgram is findProgram without running a login shell. It returns "" if the file is not
// found.
func lookUpProgram(c *stdio.Command) string {
	var file string
	ctx := context.Background() // a path is only checked
	if isPath(c.Path) {
		file, _ = checkExecutable(ctx, absoluteIn(c.Dir, c.Path))
		return file
	}
	for _, dir := range searchPath(c) {
		if file, err := process.Resolve(ctx, filepath.Join(dir, c.Path)); err == nil {
			return file
		}
	}
	if isScript(c.Path) {
		file, _ = checkExecutable(ctx, absoluteIn(c.Dir, c.Path))
	}
	return file
}

// isPath reports whether name is a path, so that PATH is not searched.
func isPath(name string) bool { return filepath.Base(name) != name || name == "." || name == ".." }

// checkExecutable returns the path of a file that can be run.
func checkExecutable(ctx context.Context, path string) (string, error) {
	file, err := process.Resolve(ctx, path)
	if errors.Is(err, fs.ErrPermission) && isScript(path) {
		if info, bad := os.Stat(path); bad == nil && info.Mode().IsRegular() {
			return path, nil // an interpreter reads it
		}
	}
	return file, err
}

// absoluteIn makes path absolute, relative to dir.
func absoluteIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	if abs, err := filepath.Abs(filepath.Join(dir, path)); err == nil {
		return abs
	}
	return path
}

// searchPath returns the folders that the child's PATH names.
func searchPath(c *stdio.Command) []string {
	path := os.Getenv("PATH")
	for name, value := range c.Env {
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			path = value
		}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// similarPrograms returns up to 3 programs in dirs with names similar to a missing one, the most
// similar first.
func similarPrograms(name string, dirs []string) []string {
	type candidate struct {
		name string
		far  int
	}
	if !near.Guessable(name) {
		return nil
	}
	const shown = 3
	most := min(2, max(1, len(name)/3))
	var close []candidate
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir) // a missing folder holds no programs
		for _, e := range entries {
			if len(e.Name()) > len(name)+most || !near.Guessable(e.Name()) {
				continue // cheap check first: folders of programs are long
			}
			far := near.Distance(name, e.Name())
			if far <= most && !slices.ContainsFunc(close, func(c candidate) bool { return c.name == e.Name() }) {
				close = append(close, candidate{e.Name(), far})
			}
		}
	}
	slices.SortStableFunc(close, func(a, b candidate) int { return a.far - b.far })
	var names []string
	for _, c := range close[:min(shown, len(close))] {
		names = append(names, c.name)
	}
	return names
}
