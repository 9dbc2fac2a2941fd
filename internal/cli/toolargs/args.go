// Package toolargs turns words of a command line into the arguments of a tool. A [Spec] is the
// tool's JSON Schema as far as that needs it: it tells the type that a word such as count=3 or
// tags=a means. Package schema decides whether a value is valid. A schema that cannot be compiled
// accepts every value: the server checks the arguments again.
package toolargs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/schema"
)

// Argument is a word of the form key=value.
type Argument struct{ Key, Value string }

// ParseArguments parses words of the form key=value. The error is a usage error.
func ParseArguments(words []string) ([]Argument, error) {
	var all []Argument
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, exit.Usagef("%q is not an argument: write key=value, or give all arguments with --args JSON", word)
		}
		all = append(all, Argument{key, value})
	}
	return all, nil
}

// Texts returns arguments as a map. It is for arguments that are always text, as in prompts. If a
// key occurs several times, the last value wins.
func Texts(given []Argument) map[string]string {
	all := map[string]string{}
	for _, g := range given {
		all[g.Key] = g.Value
	}
	return all
}

// ReadObject returns the JSON object that --args gives: JSON, @FILE, or @- for standard input. An
// empty flag means {}. The error is a usage error.
func ReadObject(flag string, stdin io.Reader) (json.RawMessage, error) {
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
		return nil, exit.Usagef("--args: %v", err)
	}
	if err := rawjson.CheckAll(raw); err != nil {
		return nil, exit.Usagef("--args: this is not JSON: %v", err)
	}
	if !rawjson.IsObject(raw) {
		return nil, exit.Usagef("--args: the arguments must be an object, such as {\"key\":\"value\"}")
	}
	return raw, nil
}

// Complete adds the given arguments to base and returns the result. It converts each value as the
// tool's schema says, and checks the result. A usage error lists all mistakes at once.
func Complete(input Spec, base json.RawMessage, given []Argument) (json.RawMessage, error) {
	values := map[string][]string{}
	for _, g := range given {
		values[g.Key] = append(values[g.Key], g.Value)
	}
	object, errs := base, []error(nil)
	for _, g := range given {
		words := values[g.Key]
		delete(values, g.Key) // words holds all values of the key
		if words == nil {
			continue
		}
		next, err := setArgument(input, object, g.Key, words)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		object = next
	}
	if errs == nil {
		errs = checkRequired(input, object)
	}
	if errs != nil {
		return nil, exit.UsageError{Err: errors.Join(errs...)}
	}
	return object, Check(input, object)
}

// setArgument returns a copy of object with the argument key set to the value of words.
func setArgument(input Spec, object json.RawMessage, key string, words []string) (json.RawMessage, error) {
	path, leaf, err := input.findPath(key)
	if err != nil {
		return nil, err
	}
	value, err := leaf.ReadWords(words)
	if err != nil {
		return nil, fmt.Errorf("argument %s: %w", key, err)
	}
	return setPath(object, path, value)
}

// findPath returns the path and the schema of the property that a key names. KEY.MEMBER names a
// property of an inner object. A property with exactly this name takes precedence, because names
// may contain dots.
func (s Spec) findPath(key string) (path []string, leaf Spec, err error) {
	if p, ok := s.findProperty(key); ok {
		return []string{key}, p.Spec, nil
	}
	for at := strings.LastIndexByte(key, '.'); at > 0; at = strings.LastIndexByte(key[:at], '.') {
		p, ok := s.findProperty(key[:at])
		if !ok || !p.allowsObject() {
			continue
		}
		path, leaf, err := p.findPath(key[at+1:])
		if err != nil {
			return nil, leaf, fmt.Errorf("in %s: %w", key[:at], err)
		}
		return append([]string{key[:at]}, path...), leaf, nil
	}
	if others, open := s.additionalSchema(); open {
		return []string{key}, others, nil
	}
	var known []string
	for _, p := range s.Properties() {
		known = append(known, p.Name)
	}
	return nil, s, fmt.Errorf("there is no argument %s%s", key, suggest.Hint(key, known))
}

// allowsObject reports whether a value may be an object.
func (s Spec) allowsObject() bool {
	types := s.allowedTypes()
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

// ReadWords returns the JSON value of the words of one key. Several words make a list.
func (s Spec) ReadWords(words []string) (json.RawMessage, error) {
	if len(words) == 1 {
		return s.parseWord(words[0])
	}
	if types := s.allowedTypes(); types != nil && !strings.Contains(strings.Join(types, " "), "array") {
		return nil, fmt.Errorf("is given %d times, and takes one value", len(words))
	}
	list := json.RawMessage{'['}
	for i, word := range words {
		item, err := s.itemSchema().parseWord(word)
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

// setPath returns a copy of object with the value at path. It adds inner objects if they are
// missing.
func setPath(object json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 1 {
		return rawjson.Set(object, path[0], value), nil
	}
	inner := json.RawMessage(rawjson.Lookup(object, path[0]))
	switch {
	case inner == nil:
		inner = json.RawMessage("{}")
	case !rawjson.IsObject(inner):
		return nil, fmt.Errorf("argument %s: it is given as a value, but %s needs an object", path[0], strings.Join(path, "."))
	}
	inner, err := setPath(inner, path[1:], value)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(object, path[0], inner), nil
}

// checkRequired returns an error for each required argument that object lacks, with its
// description.
func checkRequired(input Spec, object json.RawMessage) []error {
	var errs []error
	for _, p := range input.Properties() {
		if !p.Required || rawjson.Lookup(object, p.Name) != nil {
			continue
		}
		about := ""
		if text := term.FirstLine(p.Text("description")); text != "" {
			about = ": " + text
		}
		errs = append(errs, fmt.Errorf("argument %s (%s) is missing%s", p.Name, p.Kind(), about))
	}
	return errs
}

// Check validates the arguments against the tool's schema. It accepts everything if the schema
// cannot be compiled.
func Check(input Spec, object json.RawMessage) error {
	compiled, err := schema.Compile(input.raw)
	if err != nil {
		return nil // leave the check to the server
	}
	if err := compiled.Validate(object); err != nil {
		return exit.Usagef("the arguments do not fit: %w", err)
	}
	return nil
}
