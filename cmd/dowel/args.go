package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/schema"
)

// argument is a word of the form key=value.
type argument struct{ key, value string }

func parseArguments(words []string) ([]argument, error) {
	var all []argument
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, usagef("%q is no argument: write key=value, or give all of them with --args JSON", word)
		}
		all = append(all, argument{key, value})
	}
	return all, nil
}

// texts returns arguments that are all text, such as those of a prompt.
func texts(given []argument) map[string]string {
	all := map[string]string{}
	for _, g := range given {
		all[g.key] = g.value
	}
	return all
}

// readObject returns the object that the flag --args holds: JSON, @file, or @- for standard input.
func readObject(flag string, stdin io.Reader) (json.RawMessage, error) {
	raw, err := []byte(flag), error(nil)
	switch file, at := strings.CutPrefix(flag, "@"); {
	case flag == "":
		return json.RawMessage("{}"), nil
	case flag == "@-":
		raw, err = io.ReadAll(stdin)
	case at:
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usagef("--args: %v", err)
	}
	if err := rawjson.CheckAll(raw); err != nil {
		return nil, usagef("--args: this is no JSON: %v", err)
	}
	if !rawjson.IsObject(raw) {
		return nil, usagef("--args: the arguments must be an object, such as {\"key\":\"value\"}")
	}
	return raw, nil
}

// complete puts the given arguments into base, each as the value that the tool's schema means.
func complete(input spec, base json.RawMessage, given []argument) (json.RawMessage, error) {
	values := map[string][]string{}
	for _, g := range given {
		values[g.key] = append(values[g.key], g.value)
	}
	object, errs := base, []error(nil)
	for _, g := range given {
		words := values[g.key]
		delete(values, g.key) // later ones of the same key are in words
		if words == nil {
			continue
		}
		next, err := put(input, object, g.key, words)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		object = next
	}
	if errs == nil {
		errs = missing(input, object)
	}
	if errs != nil {
		return nil, usageError{err: errors.Join(errs...)}
	}
	return object, check(input, object)
}

// put sets the member of object that a key means.
func put(input spec, object json.RawMessage, key string, words []string) (json.RawMessage, error) {
	path, leaf, err := input.path(key)
	if err != nil {
		return nil, err
	}
	value, err := leaf.gather(words)
	if err != nil {
		return nil, fmt.Errorf("argument %s: %w", key, err)
	}
	return setPath(object, path, value)
}

// path finds what a key means: a property, or, with dots, one of an object within. What a property is called comes first,
// since its name may hold dots too.
func (s spec) path(key string) (path []string, leaf spec, err error) {
	if p, ok := s.property(key); ok {
		return []string{key}, p.spec, nil
	}
	for at := strings.LastIndexByte(key, '.'); at > 0; at = strings.LastIndexByte(key[:at], '.') {
		p, ok := s.property(key[:at])
		if !ok || !p.holdsMembers() {
			continue
		}
		path, leaf, err := p.path(key[at+1:])
		if err != nil {
			return nil, leaf, fmt.Errorf("in %s: %w", key[:at], err)
		}
		return append([]string{key[:at]}, path...), leaf, nil
	}
	if others, open := s.others(); open {
		return []string{key}, others, nil
	}
	var known []string
	for _, p := range s.properties() {
		known = append(known, p.name)
	}
	return nil, s, fmt.Errorf("there is no argument %s%s", key, suggestion(key, known))
}

// holdsMembers reports whether a value may be an object.
func (s spec) holdsMembers() bool {
	types := s.types()
	if types == nil {
		return true
	}
	for _, t := range types {
		if t == "object" {
			return true
		}
	}
	return false
}

// gather makes a value of the words of one key: several are a list.
func (s spec) gather(words []string) (json.RawMessage, error) {
	if len(words) == 1 {
		return s.typed(words[0])
	}
	if types := s.types(); types != nil && !strings.Contains(strings.Join(types, " "), "array") {
		return nil, fmt.Errorf("is given %d times, and takes one value", len(words))
	}
	list := json.RawMessage{'['}
	for i, word := range words {
		item, err := s.items().typed(word)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, item...)
	}
	return append(list, ']'), nil
}

// setPath returns a copy of object with the value at the path; objects on the way are made.
func setPath(object json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 1 {
		return rawjson.Set(object, path[0], value), nil
	}
	inner := json.RawMessage(rawjson.Lookup(object, path[0]))
	switch {
	case inner == nil:
		inner = json.RawMessage("{}")
	case !rawjson.IsObject(inner):
		return nil, fmt.Errorf("argument %s: it is given as a value, and as an object by %s", path[0], strings.Join(path, "."))
	}
	inner, err := setPath(inner, path[1:], value)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(object, path[0], inner), nil
}

// missing names the required arguments that object lacks, with what the tool says of them.
func missing(input spec, object json.RawMessage) []error {
	var errs []error
	for _, p := range input.properties() {
		if !p.required || rawjson.Lookup(object, p.name) != nil {
			continue
		}
		about := ""
		if text := firstLine(p.text("description")); text != "" {
			about = ": " + text
		}
		errs = append(errs, fmt.Errorf("argument %s (%s) is missing%s", p.name, p.kind(), about))
	}
	return errs
}

// check holds the arguments to the tool's schema, where it can be used for that.
func check(input spec, object json.RawMessage) error {
	compiled, err := schema.Compile(input.raw)
	if err != nil {
		return nil // the server knows its own schema
	}
	if err := compiled.Validate(object); err != nil {
		return usagef("the arguments do not fit: %w", err)
	}
	return nil
}
