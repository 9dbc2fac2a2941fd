package config

import (
	"bytes"
	"slices"
)

// Found is the content of another tool's file, or of one section of it.
type Found struct {
	// Dialect is the name of one of [Dialects].
	Dialect string
	Path    string
	Scope   Scope
	// Section names the part of the file if the file has several.
	Section  string
	Servers  []*Server
	Problems []Problem
}

// Discover reads the existing files of other tools in the order of [Dialects]. If names are given,
// it reads only the files of these dialects; unknown names are ignored. It changes nothing.
func Discover(o Options, names ...string) []Found {
	o = o.withDefaults()
	var all []Found
	for _, d := range dialects {
		if len(names) == 0 && d.isOwn() || len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		var paths []string
		for _, place := range d.Places(o) {
			if !slices.Contains(paths, place.Path) { // if the user's folder is the project, the file counts as the user's
				paths = append(paths, place.Path)
				all = append(all, foundIn(readFile(place, d, o), o)...)
			}
		}
	}
	return all
}

// ServersIn returns the servers in the text of a file of any tool. path determines the tool.
func ServersIn(path string, text []byte) []*Server {
	servers, _ := CheckText(path, User, text)
	return servers
}

// CheckText returns the servers in the text of a file that dowel reads, and the problems of the
// text. path determines the format.
func CheckText(path string, scope Scope, text []byte) ([]*Server, []Problem) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	c := fileContents{File: File{Path: path, Scope: scope}}.parseText(text, nil, Options{}.withDefaults())
	return c.servers, c.problems
}

// foundIn converts a file's content to results. A file of Claude Code has a second one for its
// section on the project.
func foundIn(c fileContents, o Options) []Found {
	if c.Missing {
		return nil
	}
	all := []Found{{Dialect: c.Dialect, Path: c.Path, Scope: c.Scope, Servers: c.servers, Problems: c.problems}}
	if len(c.local) > 0 {
		local := Found{Dialect: c.Dialect, Path: c.Path, Scope: c.Scope, Section: "projects[" + o.Project + "]", Servers: c.local}
		for _, s := range c.local {
			local.Problems = append(local.Problems, s.Problems...)
		}
		all = append(all, local)
	}
	return all
}
