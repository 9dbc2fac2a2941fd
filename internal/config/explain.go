package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Explanation tells where all that is known of a server comes from.
type Explanation struct {
	Server *Server
	// Values are the effective ones, secrets masked.
	Values []Value
	// Shadowed are the entries that this one wins over.
	Shadowed []*Server
	// Problems are those of the entry, and of its variables.
	Problems []Problem
}

// Explain tells of the server of that name; false where there is none.
func (set *Set) Explain(name string) (Explanation, bool) {
	s := set.Server(name)
	if s == nil {
		return Explanation{}, false
	}
	e := Explanation{Server: s, Problems: slices.Clone(s.Problems)}
	for _, shadow := range set.Shadowed {
		if shadow.Name == name {
			e.Shadowed = append(e.Shadowed, shadow.Server)
		}
	}
	d, problems := s.resolve(set.Variables)
	e.Problems = append(e.Problems, s.beside(problems)...)
	e.Values = append(e.Values, Value{Field: "type", Written: d.Server.typeWritten(), Value: string(s.Kind), At: s.Where("type")})
	for _, v := range append(slices.Clone(d.Values), s.settings()...) {
		e.Values = append(e.Values, d.maskValue(v))
	}
	return e, true
}

// Masked returns the server as it is written, with **** where something looks like a secret.
func (s *Server) Masked() *Server {
	d, _ := s.resolve(nothing)
	hidden := map[string]string{}
	for _, v := range d.Values {
		if v.Secret {
			hidden[v.Field] = d.maskValue(v).Written
		}
	}
	other := *s
	other.Spec = s.Spec.clone()
	other.each(func(field, text string) string {
		if written, ok := hidden[field]; ok {
			return written
		}
		return text
	})
	return &other
}

// typeWritten tells whether the file names the kind.
func (s *Server) typeWritten() string {
	if _, ok := s.places["type"]; ok {
		return string(s.Kind)
	}
	return ""
}

func (d *Definition) maskValue(v Value) Value {
	if !v.Secret {
		return v
	}
	written, value := d.Mask(v.Written), d.Mask(v.Value)
	if value == v.Value { // too short to be recognised in a text, but not here
		value = masked
		if written == v.Value {
			written = masked
		}
	}
	v.Written, v.Value = written, value
	return v
}

// settings are the values that are no strings, or hold no variables, of those that stand in the file.
func (s *Server) settings() []Value {
	var all []Value
	add := func(field, place, value string) {
		if at, ok := s.places[place]; ok {
			all = append(all, Value{Field: field, Written: value, Value: value, At: at})
		}
	}
	add("disabled", "disabled", fmt.Sprint(s.Disabled))
	add("required", "required", fmt.Sprint(s.Required))
	add("startTimeout", "startTimeout", s.Start.String())
	add("idleTimeout", "idleTimeout", s.Idle.String())
	add("timeout", "timeout", s.Total.String())
	add("tools.only", "tools.only", strings.Join(s.Tools.Only, ", "))
	add("tools.hide", "tools.hide", strings.Join(s.Tools.Hide, ", "))
	for _, old := range slices.Sorted(maps.Keys(s.Tools.Rename)) {
		add("tools.rename."+old, "tools.rename."+old, s.Tools.Rename[old])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tools.Describe)) {
		add("tools.describe."+name, "tools.describe."+name, s.Tools.Describe[name])
	}
	add("alwaysAllow", "alwaysAllow", strings.Join(s.AlwaysAllow, ", "))
	add("sharing", "sharing", string(s.Sharing))
	add("lazy", "lazy", fmt.Sprint(s.Lazy))
	add("idleStop", "idleStop", s.IdleStop.String())
	add("serialize", "serialize", fmt.Sprint(s.Serialize))
	add("revision", "revision", s.Revision)
	return all
}
