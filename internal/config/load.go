package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Set is the user's whole configuration: dowel's own files and the project's .mcp.json.
type Set struct {
	// Servers are the entries that count, each name once: the project's in the order of its files,
	// then the user's. Entries that are not Valid are included.
	Servers []*Server
	// Shadowed are the entries that lose against another one of the same name. They are never
	// started.
	Shadowed []Shadow
	// Files are the files that were looked for, in order of precedence, including missing ones.
	Files []File
	// Problems are the problems of the files and all entries, in the order of the files.
	Problems []Problem
	Gateway  Gateway
	// Models are the user's models, each name once. DefaultModel is the name of the model to use if
	// none is named; it is empty if no file names one. It names a missing model only if the files
	// name no other. That is one of the Problems.
	Models       []*Model
	DefaultModel string
	modelChoices []modelChoice
	definitions  definitionsChoice
	// Inputs are the inputs that the files declare.
	Inputs []Input
	// Variables are used by [Set.Explain] and [Set.Check]. They come from the options; the caller
	// may replace its functions.
	Variables Variables
	// LoadedAt is when Load had read the files.
	LoadedAt time.Time
}

// Shadow is an entry that does not count. By is the entry that wins.
type Shadow struct {
	*Server
	By *Server
}

// Load reads the project's dowel.json (.jsonc, .yaml, .yml, .toml) and .mcp.json, and the user's
// dowel files; see the package comment. It never fails: errors become Problems.
func Load(o Options) *Set {
	o = o.withDefaults()
	set := &Set{Variables: o.Variables()}
	for _, p := range set.configFiles(o) {
		set.addFile(readFile(p.Place, p.dialect, o))
	}
	set.chooseDefaultModel()
	set.LoadedAt = time.Now()
	return set
}

type configFile struct {
	Place
	dialect *Dialect
}

// configFiles returns the files to read, in order of precedence.
func (set *Set) configFiles(o Options) []configFile {
	var all []configFile
	if o.Files != nil {
		for _, path := range o.Files {
			if absolute, err := filepath.Abs(path); err == nil {
				path = absolute
			}
			all = append(all, configFile{Place: Place{Path: path, Scope: User}})
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
		// If the user's folder is the project, its files count as the user's.
		if !slices.ContainsFunc(places[:split], func(other Place) bool { return other.Path == p.Path }) {
			all = append(all, configFile{p, own})
		}
	}
	if o.Project != "" {
		all = append(all, configFile{Place{Path: o.nativePath(o.Project + "/.mcp.json"), Scope: Project}, portable})
	}
	for _, p := range places[:split] {
		all = append(all, configFile{p, own})
	}
	return all
}

// addFile adds the content of a file. Earlier files have precedence.
func (set *Set) addFile(c fileContents) {
	set.Files = append(set.Files, c.File)
	set.Problems = append(set.Problems, c.problems...)
	set.Inputs = append(set.Inputs, c.inputs...)
	set.Gateway.fillFrom(c.gateway)
	set.addModels(c)
	if set.definitions.value == "" {
		set.definitions = c.definitions
	}
	for _, s := range c.servers {
		if winner := set.Server(s.Name); winner != nil {
			set.Shadowed = append(set.Shadowed, Shadow{s, winner})
		} else {
			set.Servers = append(set.Servers, s)
		}
	}
}

// Server returns the server with a name from Servers, or nil.
func (set *Set) Server(name string) *Server {
	if i := slices.IndexFunc(set.Servers, func(s *Server) bool { return s.Name == name }); i >= 0 {
		return set.Servers[i]
	}
	return nil
}

// fillFrom takes the values that other sets and g does not.
func (g *Gateway) fillFrom(other Gateway) {
	for field, at := range other.positions {
		if _, said := g.positions[field]; said && field != "gateway.clients" { // files add clients to each other
			continue
		}
		if g.positions == nil {
			g.positions = map[string]Position{}
		}
		if _, said := g.positions[field]; !said {
			g.positions[field] = at
		}
		if key := findGatewayKey(strings.TrimPrefix(field, "gateway.")); key != nil {
			key.copy(g, other)
		}
	}
}

// UserFile returns the path of the user's own file: the first file of the options, or else the
// existing one, or else dowel.json in the configuration folder.
func UserFile(o Options) string { return Load(o).UserFile(o) }

// UserFile is the function UserFile for a set of these options.
func (set *Set) UserFile(o Options) string {
	if len(o.Files) > 0 {
		return o.Files[0]
	}
	for _, file := range set.Files {
		if file.Dialect == Own && file.Scope == User && !file.Missing {
			return file.Path
		}
	}
	return filepath.Join(o.Dir(), "dowel.json")
}
