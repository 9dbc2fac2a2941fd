package wiretest

import (
	"encoding/json"
	"strings"
)

// definitions is an index of the definitions in a revision's schema. It replaces a table of methods
// in this package.
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
		d.requests[role] = d.readUnion(name + "Request")
		d.notifications[role] = d.readUnion(name + "Notification")
	}
	for name := range d.all {
		if code := d.errorCode(name); code != "" {
			d.errors[code] = name
		}
	}
	return d
}

// readUnion maps the methods of a union such as ClientRequest to its members. A
// union of one member is written as that member, under the union's name.
func (d *definitions) readUnion(name string) map[string]string {
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

// errorCode returns the code that the definition of an error response fixes, or "". The definitions
// of MCP's own errors fix it in the second part of an allOf.
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

// firstDefined returns the first name that the schema defines, or the last one.
func (d *definitions) firstDefined(names ...string) string {
	for _, name := range names {
		if d.has(name) {
			return name
		}
	}
	return names[len(names)-1]
}

// requestName returns the definition of a request's method, for requests of both roles.
func (d *definitions) requestName(method string) (string, bool) {
	if name, ok := d.requests[Client][method]; ok {
		return name, true
	}
	name, ok := d.requests[Server][method]
	return name, ok
}

func (d *definitions) notificationName(method string) (string, bool) {
	if name, ok := d.notifications[Client][method]; ok {
		return name, true
	}
	name, ok := d.notifications[Server][method]
	return name, ok
}

// resultName returns the definition of a method's complete result. It is XResult for XRequest, or
// Result if the schema has no XResult.
func (d *definitions) resultName(method string) string {
	request, ok := d.requestName(method)
	if !ok {
		return "Result"
	}
	return d.firstDefined(strings.TrimSuffix(request, "Request")+"Result", "Result")
}

// correctSchema turns the generator's integer back into schema.ts's number, in the
// one form in which it goes wrong: a union of primitive types.
func correctSchema(document map[string]any) {
	widenIntegers(document)
	d := readDefinitions(document)
	members, _ := object(d.all, "JSONValue")["anyOf"].([]any)
	if members != nil {
		object(d.all, "JSONValue")["anyOf"] = append(members, map[string]any{"type": "null"})
	}
}

func widenIntegers(value any) {
	switch value := value.(type) {
	case map[string]any:
		if types, ok := value["type"].([]any); ok && len(types) == 3 && types[1] == "integer" {
			types[1] = "number"
		}
		for _, member := range value {
			widenIntegers(member)
		}
	case []any:
		for _, item := range value {
			widenIntegers(item)
		}
	}
}

// object returns the object at a path of nested objects, or nil.
func object(value any, path ...string) map[string]any {
	m, _ := value.(map[string]any)
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// text returns the string at a path of nested objects, or "".
func text(value any, path ...string) string {
	last := len(path) - 1
	s, _ := object(value, path[:last]...)[path[last]].(string)
	return s
}
