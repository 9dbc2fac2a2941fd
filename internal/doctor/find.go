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
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// scripts are the extensions that have an interpreter; see [stdio.Command].
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".php", ".sh", ".jar"}

func isScript(name string) bool { return slices.Contains(scripts, strings.ToLower(filepath.Ext(name))) }

// find returns the file that a command's Path names. What it says of a program that is not found is what the start of the
// command says.
func find(ctx context.Context, c *stdio.Command) (string, error) {
	if isPath(c.Path) {
		return check(ctx, within(c.Dir, c.Path))
	}
	if file := glance(c); file != "" {
		return file, nil
	}
	return stdio.Resolve(ctx, c.Path)
}

// glance is find as far as nobody has to be asked; empty where the file is not found.
func glance(c *stdio.Command) string {
	var file string
	ctx := context.Background() // a path is only checked
	if isPath(c.Path) {
		file, _ = check(ctx, within(c.Dir, c.Path))
		return file
	}
	for _, dir := range searchPath(c) {
		if file, err := stdio.Resolve(ctx, filepath.Join(dir, c.Path)); err == nil {
			return file
		}
	}
	if isScript(c.Path) {
		file, _ = check(ctx, within(c.Dir, c.Path))
	}
	return file
}

// isPath reports whether a program is named by its path, and not searched.
func isPath(name string) bool { return filepath.Base(name) != name || name == "." || name == ".." }

// check returns a path where there is something that can be run.
func check(ctx context.Context, path string) (string, error) {
	file, err := stdio.Resolve(ctx, path)
	if errors.Is(err, fs.ErrPermission) && isScript(path) {
		if info, bad := os.Stat(path); bad == nil && info.Mode().IsRegular() {
			return path, nil // an interpreter reads it
		}
	}
	return file, err
}

// within returns a path relative to a folder as an absolute one.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	if abs, err := filepath.Abs(filepath.Join(dir, path)); err == nil {
		return abs
	}
	return path
}

// searchPath returns the folders in which the child's environment looks for programs.
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

// nearest returns the programs whose names are like a name that is not there, the most alike first.
func nearest(name string, dirs []string) []string {
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
		entries, _ := os.ReadDir(dir) // a folder that is not there has no programs
		for _, e := range entries {
			if len(e.Name()) > len(name)+most || !near.Guessable(e.Name()) {
				continue // most are: folders of programs are long
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
