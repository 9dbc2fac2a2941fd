package search

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Tool describes a tool to search for.
type Tool struct {
	Name        string // the qualified name, which the result of a search shows, such as github__create_issue
	OwnName     string // the server's own name; empty means Name without the server's
	Server      string
	Title       string
	Description string
	Parameters  []Parameter
}

// Parameter is a parameter of a tool.
type Parameter struct {
	Name        string
	Description string // with the values of an enum
}

// FromDefinition returns the description of a tool from its definition in tools/list. It leaves out
// parts that are missing or malformed, so that the tool is still found by the rest.
func FromDefinition(server, qualifiedName string, raw json.RawMessage) Tool {
	fields := decodeObject(raw)
	annotations := decodeObject(fields["annotations"])
	t := Tool{
		Name:        qualifiedName,
		OwnName:     decodeString(fields["name"]),
		Server:      server,
		Title:       decodeString(fields["title"]),
		Description: decodeString(fields["description"]),
		Parameters:  parseParameters(fields["inputSchema"]),
	}
	if t.Title == "" {
		t.Title = decodeString(annotations["title"])
	}
	return t
}

const (
	maxDepth      = 4 // of nested objects
	maxParameters = 500
)

// parseParameters returns the properties of an input schema in the order of their names, each
// followed by the properties inside it.
func parseParameters(schema json.RawMessage) (all []Parameter) {
	return appendParameters(nil, decodeObject(schema), maxDepth)
}

func appendParameters(all []Parameter, schema map[string]json.RawMessage, depth int) []Parameter {
	properties := decodeObject(schema["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(all) == maxParameters {
			break
		}
		fields := decodeObject(properties[name])
		items := decodeObject(fields["items"])
		about := append(decodeStrings(fields["enum"]), decodeStrings(items["enum"])...)
		if d := decodeString(fields["description"]); d != "" {
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

// decodeObject, decodeString and decodeStrings return the zero value for a value of another type.
func decodeObject(raw json.RawMessage) (fields map[string]json.RawMessage) {
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func decodeString(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func decodeStrings(raw json.RawMessage) (all []string) {
	var some []json.RawMessage
	if json.Unmarshal(raw, &some) != nil {
		return nil
	}
	for _, v := range some {
		if s := decodeString(v); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// ownName returns the server's own name of the tool.
func (t *Tool) ownName() string {
	if t.OwnName != "" {
		return t.OwnName
	}
	rest, ok := strings.CutPrefix(t.Name, t.Server)
	if ok && t.Server != "" {
		if own := strings.TrimLeft(rest, "_./"); own != "" {
			return own
		}
	}
	return t.Name
}
