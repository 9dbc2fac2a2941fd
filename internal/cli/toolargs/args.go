// Package toolargs turns words of a command line into the arguments of a tool. A [Spec] is the
// tool's JSON Schema as far as that needs it: it tells the type that a word such as count=3 or
// tags=a means. Whether a value is valid is package schema's to say; a schema that cannot be
// understood lets every value pass, since the server checks it again.
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

func ParseArguments(words []string) ([]Argument, error) {
	var all []Argument
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, exit.Usagef("%q is no argument: write key=value, or give all of them with --args JSON", word)
		}
		all = append(all, Argument{key, value})
	}
	return all, nil
}

// Texts returns arguments that are all text, such as those of a prompt.
func Texts(given []Argument) map[string]string {
	all := map[string]string{}
	for _, g := range given {
		all[g.Key] = g.Value
	}
	return all
}

// ReadObject returns the object that the flag --args holds: JSON, @file, or @- for standard input.
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
		return nil, exit.Usagef("--args: this is no JSON: %v", err)
	}
	if !rawjson.IsObject(raw) {
		return nil, exit.Usagef("--args: the arguments must be an object, such as {\"key\":\"value\"}")
	}
	return raw, nil
}

// Complete puts the given arguments into base, each as the value that the tool's schema means.
func Complete(input Spec, base json.RawMessage, given []Argument) (json.RawMessage, error) {
	values := map[string][]string{}
	for _, g := range given {
		values[g.Key] = append(values[g.Key], g.Value)
	}
	object, errs := base, []error(nil)
	for _, g := range given {
		words := values[g.Key]
		delete(values, g.Key) // later ones of the same key are in words
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

// setArgument sets the member of object that a key means.
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

// findPath finds what a key means: a property, or, with dots, one of an object within. What a property is called comes first,
// since its name may hold dots too.
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

// ReadWords makes a value of the words of one key: several are a list.
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

// checkRequired names the required arguments that object lacks, with what the tool says of them.
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

// Check holds the arguments to the tool's schema, where it can be used for that.
func Check(input Spec, object json.RawMessage) error {
	compiled, err := schema.Compile(input.raw)
	if err != nil {
		return nil // the server knows its own schema
	}
	if err := compiled.Validate(object); err != nil {
		return exit.Usagef("the arguments do not fit: %w", err)
	}
	return nil
}
