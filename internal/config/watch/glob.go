package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// skippedFolders are folders with many files that the user did not write.
var skippedFolders = map[string]bool{".git": true, "node_modules": true, "__pycache__": true, ".venv": true}

// targets are [Targets] in parsed form.
type targets struct {
	files []string
	globs []glob
}

// glob is a parsed pattern.
type glob struct {
	source string   // the pattern as the caller wrote it
	base   string   // the pattern's path before the first element with *, ? or [
	rest   []string // the elements of the pattern below base
}

func compileTargets(t Targets) (targets, error) {
	var c targets
	for _, path := range t.Files {
		path, err := filepath.Abs(path)
		if err != nil {
			return targets{}, err
		}
		if !slices.Contains(c.files, path) {
			c.files = append(c.files, path)
		}
	}
	for _, pattern := range t.Globs {
		g, err := compileGlob(pattern)
		if err != nil {
			return targets{}, err
		}
		c.globs = append(c.globs, g)
	}
	return c, nil
}

func compileGlob(pattern string) (glob, error) {
	path, err := filepath.Abs(pattern)
	if err != nil {
		return glob{}, err
	}
	g := glob{source: pattern, base: path}
	if _, err := os.Lstat(path); err == nil {
		return g, nil
	}
	if _, err := filepath.Match(path, ""); err != nil {
		return glob{}, fmt.Errorf("%q is not a valid file pattern: %w", pattern, err)
	}
	start, all := splitRoot(path)
	n := 0
	for n < len(all) && !strings.ContainsAny(all[n], "*?[") {
		n++
	}
	g.base, g.rest = filepath.Join(append([]string{start}, all[:n]...)...), all[n:]
	return g, nil
}

// skipsFolder reports whether folders with this name are skipped.
func (g *glob) skipsFolder(name string) bool {
	return skippedFolders[name] && !slices.Contains(g.rest, name)
}

// matchesPath reports whether the pattern matches a path, or a folder that contains it. names are
// the elements of the path below base.
func (g *glob) matchesPath(names []string) bool { return matchElements(g.rest, names) }

// matchElements reports whether a pattern matches a path or one of its parent folders.
func matchElements(pattern, names []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if pattern[0] == "**" {
		if len(pattern) == 1 {
			return len(names) > 0
		}
		for i := range names {
			if matchElements(pattern[1:], names[i:]) {
				return true
			}
		}
		return false
	}
	return len(names) > 0 && matchName(pattern[0], names[0]) && matchElements(pattern[1:], names[1:])
}

// mayMatchBelow reports whether the pattern may match a path, or a file below it. names are the
// elements of the path below base.
func (g *glob) mayMatchBelow(names []string) bool {
	for i, element := range g.rest {
		if i == len(names) || element == "**" {
			return true
		}
		if !matchName(element, names[i]) {
			return false
		}
	}
	return true
}

func matchName(pattern, name string) bool {
	ok, _ := filepath.Match(pattern, name) // cannot fail: compileGlob has checked the pattern
	return ok
}

// stateOf returns the state of a file with the targets to which path belongs. The caller adds the
// fingerprint.
func (t *targets) stateOf(path string) fileState {
	s := fileState{file: slices.Contains(t.files, path)}
	for _, g := range t.globs {
		if names, ok := elementsBelow(g.base, path); ok && g.matchesPath(names) && !slices.ContainsFunc(names, g.skipsFolder) {
			s.globs = append(s.globs, g.source)
		}
	}
	return s
}

// elementsBelow returns the elements of path below base. ok is false if path is not below base.
func elementsBelow(base, path string) ([]string, bool) {
	if path == base {
		return nil, true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(base, string(filepath.Separator))+string(filepath.Separator))
	if !ok {
		return nil, false
	}
	return splitElements(rest), true
}
