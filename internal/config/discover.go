package config

import "slices"

// Found is what a file of another tool holds.
type Found struct {
	// Dialect is the name of one of [Dialects].
	Dialect string
	Path    string
	Scope   Scope
	// Section says which part of the file, where the file has several.
	Section  string
	Servers  []*Server
	Problems []Problem
}

// Discover reads the files of other tools that exist, in the order of [Dialects], or of those that are named; a name that is not
// known has none. It starts nothing, and changes nothing.
func Discover(o Options, names ...string) []Found {
	o = o.complete()
	var all []Found
	for _, d := range dialects {
		if len(names) == 0 && d.own() || len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		var paths []string
		for _, place := range d.Places(o) {
			if !slices.Contains(paths, place.Path) { // a file in the user's folder is the user's, even where that is the project
				paths = append(paths, place.Path)
				all = append(all, found(readFile(place, d, o), o)...)
			}
		}
	}
	return all
}

func found(c contents, o Options) []Found {
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
