package control

import (
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
)

// Configuration is the configuration as it is in force: the files that dowel looks for, and each
// server with its effective values. Secrets are masked.
type Configuration struct {
	// Files are in the order of their precedence.
	Files   []ConfigFile  `json:"files"`
	Servers []ConfigEntry `json:"servers"`
}

// ConfigFile is a file that dowel looks for.
type ConfigFile struct {
	Path string `json:"path"`
	// Scope is user or project.
	Scope config.Scope `json:"scope"`
	Hash  string       `json:"hash,omitzero"` // of the text as it is in force; "" if the file is missing
	// State is read, missing, empty or broken. The servers of a broken file stay as they were.
	State string `json:"state"`
	// Servers is the number of entries that count, Shadowed the number of entries that do not.
	Servers  int `json:"servers"`
	Shadowed int `json:"shadowed"`
	// Problems are the problems of the file. Problems of an entry are left out.
	Problems []string `json:"problems,omitempty"`
}

// ConfigPlace is a place in a file. Line counts from 1. It is 0 if the line is unknown.
type ConfigPlace struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

// ConfigEntry is the entry of a server that counts.
type ConfigEntry struct {
	Name     string        `json:"name"`
	At       ConfigPlace   `json:"at"`
	Scope    config.Scope  `json:"scope"`
	Disabled bool          `json:"disabled,omitzero"` // by the file
	Values   []ConfigValue `json:"values"`
	// Shadowed are the entries of the same name that this one replaces.
	Shadowed []ConfigPlace `json:"shadowed,omitempty"`
	Problems []string      `json:"problems,omitempty"`
}

// ConfigValue is an effective value.
type ConfigValue struct {
	Field string `json:"field"`
	Value string `json:"value"`
	// Written is the text in the file, if it differs from the value.
	Written string `json:"written,omitzero"`
	// At is nil for a value that no file sets.
	At *ConfigPlace `json:"at,omitempty"`
	// From are the variables in it, such as "environment variable TOKEN".
	From []string `json:"from,omitempty"`
}

// DescribeConfig returns the configuration of a set.
func DescribeConfig(set *config.Set) Configuration {
	c := Configuration{Files: []ConfigFile{}, Servers: []ConfigEntry{}}
	for _, f := range set.Files {
		c.Files = append(c.Files, describeFile(set, f))
	}
	for _, s := range set.Servers {
		if e, ok := set.Explain(s.Name); ok {
			c.Servers = append(c.Servers, describeEntry(e))
		}
	}
	return c
}

func describeFile(set *config.Set, f config.File) ConfigFile {
	out := ConfigFile{Path: f.Path, Scope: f.Scope, Hash: f.Hash, State: "read"}
	switch {
	case f.Missing:
		out.State = "missing"
	case f.Empty:
		out.State = "empty"
	case f.Broken:
		out.State = "broken"
	}
	for _, s := range set.Servers {
		if s.Path == f.Path {
			out.Servers++
		}
	}
	for _, s := range set.Shadowed {
		if s.Path == f.Path {
			out.Shadowed++
		}
	}
	for _, p := range set.Problems {
		if p.Server == "" && p.Path == f.Path {
			out.Problems = append(out.Problems, p.Text())
		}
	}
	return out
}

func describeEntry(e config.Explanation) ConfigEntry {
	out := ConfigEntry{Name: e.Server.Name, At: describePlace(e.Server.At), Scope: e.Server.Scope, Disabled: e.Server.Disabled, Values: []ConfigValue{}}
	for _, v := range e.Values {
		value := ConfigValue{Field: v.Field, Value: v.Value, From: v.From}
		if v.Written != v.Value {
			value.Written = v.Written
		}
		if v.At.Path != "" {
			at := describePlace(v.At)
			value.At = &at
		}
		out.Values = append(out.Values, value)
	}
	for _, s := range e.Shadowed {
		out.Shadowed = append(out.Shadowed, describePlace(s.At))
	}
	for _, p := range e.Problems {
		out.Problems = append(out.Problems, p.Text())
	}
	slices.SortStableFunc(out.Values, func(a, b ConfigValue) int { return strings.Compare(groupField(a.Field), groupField(b.Field)) })
	return out
}

// groupField returns a key that sorts the fields which start a server before the others.
func groupField(field string) string {
	first, _, _ := strings.Cut(strings.ReplaceAll(field, "[", "."), ".")
	if i := slices.Index([]string{"type", "command", "args", "url", "headers", "env", "envFile", "cwd"}, first); i >= 0 {
		return string(rune('0' + i))
	}
	return "z"
}

func describePlace(p config.Position) ConfigPlace { return ConfigPlace{p.Path, p.Line} }

// configSet returns the configuration in force, or nil. It is another pointer after each load.
func (d Running) configSet() *config.Set {
	if d.Config == nil {
		return nil
	}
	return d.Config()
}
