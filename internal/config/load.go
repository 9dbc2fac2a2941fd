package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// Set is all that the user's own configuration says: dowel's files and the project's .mcp.json.
type Set struct {
	// Servers are the ones that count, each name once: first the project's, in the order of its files, then the user's. Those
	// that are not Valid are among them.
	Servers []*Server
	// Shadowed are entries that another one of the same name wins over; they are never started.
	Shadowed []Shadow
	// Files are those that were looked for, in the order of precedence, the missing ones too.
	Files []File
	// Problems are those of the files and of all entries, in the order of the files.
	Problems []Problem
	Gateway  Gateway
	// Models are the user's, each name once, and DefaultModel is the name of the one that is meant where none is named; empty:
	// nobody has said. It is one that there is not only where the files name no other, which is among the problems.
	Models       []*Model
	DefaultModel string
	choices      []choice
	// Inputs are the questions that the files declare.
	Inputs []Input
	// Variables are what [Set.Explain] expands strings with: those of the options. Its functions may be replaced.
	Variables Variables
}

// Shadow is an entry that does not count, and the one that does.
type Shadow struct {
	*Server
	By *Server
}

// Load reads the project's dowel.json (.jsonc, .yaml, .yml, .toml) and .mcp.json, and the user's dowel.json and so on; see the
// package comment. It never fails: what cannot be read is a problem.
func Load(o Options) *Set {
	o = o.complete()
	set := &Set{Variables: o.Variables()}
	for _, p := range set.places(o) {
		set.add(readFile(p.Place, p.dialect, o))
	}
	set.settleDefault()
	return set
}

type ownPlace struct {
	Place
	dialect *Dialect
}

func (set *Set) places(o Options) []ownPlace {
	var all []ownPlace
	if o.Files != nil {
		for _, path := range o.Files {
			if absolute, err := filepath.Abs(path); err == nil {
				path = absolute
			}
			all = append(all, ownPlace{Place: Place{path, User}})
		}
		return all
	}
	own, portable := lookupDialect(Own), lookupDialect(ClaudeCode)
	places := own.Places(o)
	split := slices.IndexFunc(places, func(p Place) bool { return p.Scope == Project })
	if split < 0 {
		split = len(places)
	}
	for _, p := range places[split:] {
		// A file in the user's folder is the user's, even where that folder is the project.
		if !slices.ContainsFunc(places[:split], func(other Place) bool { return other.Path == p.Path }) {
			all = append(all, ownPlace{p, own})
		}
	}
	if o.Project != "" {
		all = append(all, ownPlace{Place{o.native(o.Project + "/.mcp.json"), Project}, portable})
	}
	for _, p := range places[:split] {
		all = append(all, ownPlace{p, own})
	}
	return all
}

func (set *Set) add(c contents) {
	set.Files = append(set.Files, c.File)
	set.Problems = append(set.Problems, c.problems...)
	set.Inputs = append(set.Inputs, c.inputs...)
	set.Gateway.fill(c.gateway)
	set.addModels(c)
	for _, s := range c.servers {
		if winner := set.Server(s.Name); winner != nil {
			set.Shadowed = append(set.Shadowed, Shadow{s, winner})
		} else {
			set.Servers = append(set.Servers, s)
		}
	}
}

// Server returns the server of that name that counts, or nil.
func (set *Set) Server(name string) *Server {
	if i := slices.IndexFunc(set.Servers, func(s *Server) bool { return s.Name == name }); i >= 0 {
		return set.Servers[i]
	}
	return nil
}

// fill takes from another file what no file before it has said.
func (g *Gateway) fill(other Gateway) {
	for field, at := range other.places {
		if _, said := g.places[field]; said {
			continue
		}
		if g.places == nil {
			g.places = map[string]Position{}
		}
		g.places[field] = at
		if key := findGatewayKey(strings.TrimPrefix(field, "gateway.")); key != nil {
			key.copy(g, other)
		}
	}
}
