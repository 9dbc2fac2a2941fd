package search

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Tool is what is known of a tool.
type Tool struct {
	Name        string // qualified, as whoever asks is to call it, such as github__create_issue
	Bare        string // the server's own name of it; empty: what Name has behind the server's
	Server      string
	Title       string
	Description string
	Parameters  []Parameter
}

// Parameter is an argument that a tool takes.
type Parameter struct {
	Name        string
	Description string // with the values to choose from, where there are some
}

// FromDefinition reads a tool as its server defined it in tools/list. What is missing or cannot be read is left out, so that
// a tool with a broken definition is still found by the rest.
func FromDefinition(server, qualifiedName string, raw json.RawMessage) Tool {
	fields := object(raw)
	annotations := object(fields["annotations"])
	t := Tool{
		Name:        qualifiedName,
		Bare:        text(fields["name"]),
		Server:      server,
		Title:       text(fields["title"]),
		Description: text(fields["description"]),
		Parameters:  parameters(fields["inputSchema"]),
	}
	if t.Title == "" {
		t.Title = text(annotations["title"])
	}
	return t
}

const (
	maxDepth      = 4 // of objects in objects
	maxParameters = 500
)

// parameters reads an input schema's properties, in the order of their names, each with those of the objects that it is
// made of behind it.
func parameters(schema json.RawMessage) (all []Parameter) {
	return appendParameters(nil, object(schema), maxDepth)
}

func appendParameters(all []Parameter, schema map[string]json.RawMessage, depth int) []Parameter {
	properties := object(schema["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(all) == maxParameters {
			break
		}
		fields := object(properties[name])
		items := object(fields["items"])
		about := append(values(fields["enum"]), values(items["enum"])...)
		if d := text(fields["description"]); d != "" {
			about = append([]string{d}, about...)
		}
		all = append(all, Parameter{Name: name, Description: strings.Join(about, " ")})
		if depth > 1 {
			all = appendParameters(all, fields, depth-1)
			all = appendParameters(all, items, depth-1)
		}
	}
	return all
}

// object, text and values return the zero value of what is of another type.
func object(raw json.RawMessage) (fields map[string]json.RawMessage) {
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func values(raw json.RawMessage) (all []string) {
	var some []json.RawMessage
	if json.Unmarshal(raw, &some) != nil {
		return nil
	}
	for _, v := range some {
		if s := text(v); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// bare returns the server's own name of the tool.
func (t *Tool) bare() string {
	if t.Bare != "" {
		return t.Bare
	}
	rest, ok := strings.CutPrefix(t.Name, t.Server)
	if ok && t.Server != "" {
		if own := strings.TrimLeft(rest, "_./"); own != "" {
			return own
		}
	}
	return t.Name
}
