package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// Explanation tells where each value of a server comes from.
type Explanation struct {
	Server *Server
	// Values are the effective values, with masked secrets.
	Values []Value
	// Shadowed are the entries that lose against this one.
	Shadowed []*Server
	// Problems are the problems of the entry and its variables.
	Problems []Problem
}

// Explain explains the server with a name. ok is false if it does not exist.
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
	d, problems := s.resolveAll(set.Variables)
	e.Problems = append(e.Problems, s.additionalProblems(problems)...)
	e.Values = append(e.Values, Value{Field: "type", Written: d.Server.writtenType(), Value: string(s.Kind), At: s.Where("type")})
	for _, v := range append(slices.Clone(d.Values), s.plainValues()...) {
		e.Values = append(e.Values, d.maskValue(v))
	}
	if c := set.definitions; c.value != "" && s.Definitions == "" {
		e.Values = append(e.Values, Value{Field: "definitions", Written: c.value, Value: c.value, At: c.at})
	}
	return e, true
}

// Masked returns a copy of the entry in which the values that look like secrets are masked.
func (s *Server) Masked() *Server {
	d, _ := s.resolveAll(noVariables)
	hidden := map[string]string{}
	for _, v := range d.Values {
		if v.Secret {
			hidden[v.Field] = d.maskValue(v).Written
		}
	}
	other := *s
	other.Spec = s.Spec.clone()
	other.eachString(func(field, text string) string {
		if written, ok := hidden[field]; ok {
			return written
		}
		return text
	})
	return &other
}

// writtenType returns the kind if the file names a type, otherwise "".
func (s *Server) writtenType() string {
	if _, ok := s.positions["type"]; ok {
		return string(s.Kind)
	}
	return ""
}

// maskValue masks the secrets in v. A secret value that is too short to be masked is replaced as a
// whole.
func (d *Definition) maskValue(v Value) Value {
	if !v.Secret {
		return v
	}
	written, value := d.Mask(v.Written), d.Mask(v.Value)
	if value == v.Value { // too short to be masked in texts, but this value must not be shown
		value = secretmask.Mask
		if written == v.Value {
			written = secretmask.Mask
		}
	}
	v.Written, v.Value = written, value
	return v
}

// plainValues returns the values of the file that hold no variables.
func (s *Server) plainValues() []Value {
	var all []Value
	add := func(field, place, value string) {
		if at, ok := s.positions[place]; ok {
			all = append(all, Value{Field: field, Written: value, Value: value, At: at})
		}
	}
	add("disabled", "disabled", fmt.Sprint(s.Disabled))
	add("required", "required", fmt.Sprint(s.Required))
	add("installTimeout", "installTimeout", s.Install.String())
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
	add("trustAnnotations", "trustAnnotations", fmt.Sprint(s.TrustAnnotations))
	add("sharing", "sharing", string(s.Sharing))
	add("lazy", "lazy", fmt.Sprint(s.Lazy))
	add("idleStop", "idleStop", s.IdleStop.String())
	add("keepDetached", "keepDetached", fmt.Sprint(s.KeepDetached))
	add("serialize", "serialize", fmt.Sprint(s.Serialize))
	add("definitions", "definitions", s.Definitions)
	add("revision", "revision", s.Revision)
	return all
}
