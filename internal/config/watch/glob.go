package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// passedOver are folders that hold what others wrote, in numbers.
var passedOver = map[string]bool{".git": true, "node_modules": true, "__pycache__": true, ".venv": true}

// targets are [Targets], understood.
type targets struct {
	files []string
	globs []glob
}

// glob is a pattern.
type glob struct {
	source string   // as it was given
	base   string   // the folder, or file, that it starts at
	rest   []string // the pattern's elements below base
}

func compile(t Targets) (targets, error) {
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
		return glob{}, fmt.Errorf("%q is no pattern for files: %w", pattern, err)
	}
	start, all := root(path)
	n := 0
	for n < len(all) && !strings.ContainsAny(all[n], "*?[") {
		n++
	}
	g.base, g.rest = filepath.Join(append([]string{start}, all[:n]...)...), all[n:]
	return g, nil
}

// passes reports whether folders of this name are passed over.
func (g *glob) passes(name string) bool { return passedOver[name] && !slices.Contains(g.rest, name) }

// matches reports whether the pattern matches a path below its base, or a folder that it is in.
func (g *glob) matches(names []string) bool { return match(g.rest, names) }

func match(pattern, names []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if pattern[0] == "**" {
		if len(pattern) == 1 {
			return len(names) > 0
		}
		for i := range names {
			if match(pattern[1:], names[i:]) {
				return true
			}
		}
		return false
	}
	return len(names) > 0 && matchName(pattern[0], names[0]) && match(pattern[1:], names[1:])
}

// leads reports whether the pattern may match something at a path below its base, or below that.
func (g *glob) leads(names []string) bool {
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
	ok, _ := filepath.Match(pattern, name) // compileGlob has seen that it is one
	return ok
}

// of returns which targets a path belongs to.
func (t *targets) of(path string) sighting {
	s := sighting{file: slices.Contains(t.files, path)}
	for _, g := range t.globs {
		if names, ok := below(g.base, path); ok && g.matches(names) && !slices.ContainsFunc(names, g.passes) {
			s.globs = append(s.globs, g.source)
		}
	}
	return s
}

// below returns path's elements below base.
func below(base, path string) ([]string, bool) {
	if path == base {
		return nil, true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(base, string(filepath.Separator))+string(filepath.Separator))
	if !ok {
		return nil, false
	}
	return elements(rest), true
}
