package wiretest

import (
	"encoding/json"
	"strings"
)

// definitions is what a revision's schema says about its own names, so that no
// table of methods has to be kept here beside it.
type definitions struct {
	keyword string // "definitions" up to 2025-06-18, "$defs" since
	all     map[string]any
	// method → definition, of the messages each role may send
	requests      [2]map[string]string
	notifications [2]map[string]string
	errors        map[string]string // code → definition of the whole error response
}

func readDefinitions(document map[string]any) *definitions {
	d := &definitions{keyword: "$defs", errors: map[string]string{}}
	if _, ok := document["definitions"]; ok {
		d.keyword = "definitions"
	}
	d.all = object(document, d.keyword)
	for role, name := range []string{"Client", "Server"} {
		d.requests[role] = d.union(name + "Request")
		d.notifications[role] = d.union(name + "Notification")
	}
	for name := range d.all {
		if code := d.errorCode(name); code != "" {
			d.errors[code] = name
		}
	}
	return d
}

// union maps the methods of a union such as ClientRequest to its members. A
// union of one member is written as that member, under the union's name.
func (d *definitions) union(name string) map[string]string {
	methods := map[string]string{}
	members, _ := object(d.all, name)["anyOf"].([]any)
	for _, member := range members {
		reference := text(member, "$ref")
		d.addMethod(methods, reference[strings.LastIndexByte(reference, '/')+1:])
	}
	d.addMethod(methods, name)
	return methods
}

func (d *definitions) addMethod(methods map[string]string, name string) {
	if method := text(d.all, name, "properties", "method", "const"); method != "" {
		methods[method] = name
	}
}

// errorCode returns the code that an error response's definition fixes, if it
// does: those of MCP's own errors do, as the second part of an allOf.
func (d *definitions) errorCode(name string) string {
	parts, _ := object(d.all, name, "properties", "error")["allOf"].([]any)
	for _, part := range parts {
		if code, ok := object(part, "properties", "code")["const"].(json.Number); ok {
			return code.String()
		}
	}
	return ""
}

func (d *definitions) has(name string) bool { return d.all[name] != nil }

// first returns the first name that the schema defines, or the last one.
func (d *definitions) first(names ...string) string {
	for _, name := range names {
		if d.has(name) {
			return name
		}
	}
	return names[len(names)-1]
}

// request returns the definition of a request's method, whoever sends it.
func (d *definitions) request(method string) (string, bool) {
	if name, ok := d.requests[Client][method]; ok {
		return name, true
	}
	name, ok := d.requests[Server][method]
	return name, ok
}

func (d *definitions) notification(method string) (string, bool) {
	if name, ok := d.notifications[Client][method]; ok {
		return name, true
	}
	name, ok := d.notifications[Server][method]
	return name, ok
}

// result returns the definition of a method's complete result: XRequest is
// answered by XResult, and by the bare Result where the schema has no XResult.
func (d *definitions) result(method string) string {
	request, ok := d.request(method)
	if !ok {
		return "Result"
	}
	return d.first(strings.TrimSuffix(request, "Request")+"Result", "Result")
}

// correct turns the generator's integer back into schema.ts's number, in the
// one form in which it goes wrong: a union of primitive types.
func correct(document map[string]any) {
	widen(document)
	d := readDefinitions(document)
	members, _ := object(d.all, "JSONValue")["anyOf"].([]any)
	if members != nil {
		object(d.all, "JSONValue")["anyOf"] = append(members, map[string]any{"type": "null"})
	}
}

func widen(value any) {
	switch value := value.(type) {
	case map[string]any:
		if types, ok := value["type"].([]any); ok && len(types) == 3 && types[1] == "integer" {
			types[1] = "number"
		}
		for _, member := range value {
			widen(member)
		}
	case []any:
		for _, item := range value {
			widen(item)
		}
	}
}

// object walks into nested objects; it returns nil where there is none.
func object(value any, path ...string) map[string]any {
	m, _ := value.(map[string]any)
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// text walks into nested objects to a string; it returns "" where there is none.
func text(value any, path ...string) string {
	last := len(path) - 1
	s, _ := object(value, path[:last]...)[path[last]].(string)
	return s
}
