// Package edit changes single values in a user's configuration files: JSON with comments, YAML and
// TOML. It changes the smallest span of text. All other bytes stay: comments, order, unknown keys,
// indentation, line ends, a byte order mark, trailing commas, and a final line break or its
// absence.
//
//	text, err = edit.Set(text, edit.JSON, []string{"mcpServers", "github", "command"}, "npx")
//	text, err = edit.Remove(text, edit.JSON, []string{"mcpServers", "weather"})
//
// # Paths
//
// A path leads from the top of the file, which must be an object, to a value. Each element is the
// key of an object or selects an entry of a list: [name=foo] selects the entry with a member name
// that holds the string foo. If neither an object nor a list exists there, an element of that form
// creates a list; to create an object with such a key, Set the object itself first. Null counts as
// missing.
//
// # Promises
//
// The result of an edit parses, has the wanted value at the path, and equals the old content
// everywhere else. Each edit verifies this by parsing the result. If the check fails, the edit
// returns no text and an error that wraps [ErrUnsafe]. This happens to values that cannot be edited
// in one place, such as YAML aliases, and to unsupported files: several YAML documents in one file,
// explicit YAML keys ("? key"), a key that occurs twice.
//
// A comment is removed together with an entry if it follows the entry on the same line, or stands
// on the lines directly above without a blank line between. In YAML the lines above must be
// indented like the entry, and comments below the entry that are indented deeper belong to it too.
// In TOML the comments directly below the last line of a table's section belong to the table.
// Comments that begin on the first line of the file belong to the file.
//
// All functions are pure and safe for concurrent use.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Format is the syntax of a file.
type Format int

// The formats. JSON may have comments and trailing commas. Set writes a trailing comma if the file
// has one.
const (
	JSON Format = iota
	YAML
	TOML
)

func (f Format) String() string {
	switch f {
	case JSON:
		return "JSON"
	case YAML:
		return "YAML"
	case TOML:
		return "TOML"
	}
	return fmt.Sprintf("Format(%d)", int(f))
}

// FormatOf returns the format for a file name's extension: .json, .jsonc and .json5 (only JSON with
// comments is supported), .yaml, .yml and .toml. ok is false for any other extension.
func FormatOf(name string) (f Format, ok bool) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json", ".jsonc", ".json5":
		return JSON, true
	case ".yaml", ".yml":
		return YAML, true
	case ".toml":
		return TOML, true
	}
	return 0, false
}

// ErrUnsafe is wrapped by the error of an edit that would change other values or is not supported.
// The user must edit the file by hand.
var ErrUnsafe = errors.New("the file must be edited by hand")

// syntax implements the edits of one format. Texts have no byte order mark. Values have the types
// that [normalize] returns.
type syntax interface {
	parseText(text []byte) (any, error)

	// setValue sets the value at path and creates the containers on the way. model is the parsed
	// text. The caller never replaces an object by an object.
	setValue(text []byte, model any, path []string, value any) ([]byte, error)

	// removeValue removes the value at path, which must exist.
	removeValue(text []byte, model any, path []string) ([]byte, error)
}

func (f Format) syntax() (syntax, error) {
	switch f {
	case JSON:
		return jsonSyntax{}, nil
	case YAML:
		return yamlSyntax{}, nil
	case TOML:
		return tomlSyntax{}, nil
	}
	return nil, fmt.Errorf("edit: unknown format %v", f)
}

// Set returns text with value at path. If the path exists, only the value's text changes; if the
// old and the new value are both objects, only the members that differ change, so the others keep
// their comments and their order. If the path is missing, Set adds the value after its last
// sibling, in the style of the file, and creates the objects or tables that lead to it. text may be
// empty. If nothing changes, Set returns text itself.
//
// value is nil (not in TOML), a bool, a string, any integer or float type, a json.Number, an
// [Object] (written in its order), a map with string keys (written in the order of the keys), or a
// slice of such values. For an entry that is selected by [name=foo], value is an object, which may
// leave out the name.
func Set(text []byte, f Format, path []string, value any) ([]byte, error) {
	result, err := setAt(text, f, path, value)
	if err != nil {
		return nil, fmt.Errorf("cannot set %s: %w", formatPath(path), err)
	}
	return result, nil
}

// setAt computes the wanted content and the steps towards it, applies the steps and compares the
// result.
func setAt(text []byte, f Format, path []string, value any) ([]byte, error) {
	v, err := normalize(value)
	if err != nil {
		return nil, err
	}
	e, err := openEditor(text, f, path)
	if err != nil {
		return nil, err
	}
	if v, err = addEntryName(e.model, path, v); err != nil {
		return nil, err
	}
	want, err := assignAt(e.model, path, v)
	if err != nil {
		return nil, err
	}
	old, _, err := lookUp(e.model, path)
	if err != nil {
		return nil, err
	}
	return e.applySteps(text, planSteps(nil, path, old, v), func(got any) bool { return equalValues(got, want) })
}

// Remove returns text without the entry at path: its key, its lines or its place in a line, its
// comma and its comments. The container stays, even if it is empty now, except in TOML, where it
// disappears with its last table. If the path is missing, Remove returns text itself.
func Remove(text []byte, f Format, path []string) ([]byte, error) {
	result, err := removeAt(text, f, path)
	if err != nil {
		return nil, fmt.Errorf("cannot remove %s: %w", formatPath(path), err)
	}
	return result, nil
}

// removeAt removes the value like setAt. The result may also lack tables that became empty, since
// TOML cannot write all of them.
func removeAt(text []byte, f Format, path []string) ([]byte, error) {
	e, err := openEditor(text, f, path)
	if err != nil {
		return nil, err
	}
	if _, ok, err := lookUp(e.model, path); err != nil || !ok {
		return text, err
	}
	want := removeFrom(e.model, path)
	return e.applySteps(text, []step{{path: path, remove: true}}, func(got any) bool {
		return equalValues(got, want) || f == TOML && equalWithoutEmpty(got, want, path)
	})
}

// Parse returns the whole value of a text, with the types of [Lookup].
func Parse(text []byte, f Format) (any, error) {
	s, err := f.syntax()
	if err != nil {
		return nil, err
	}
	return s.parseText(bytes.TrimPrefix(text, byteOrderMark))
}

// Lookup returns the value at path: nil, a bool, a string, an int64, uint64 or float64, an
// [Object], an []any, or a [Literal] for a TOML date or time. ok is false if the path is missing.
func Lookup(text []byte, f Format, path []string) (value any, ok bool, err error) {
	e, err := openEditor(text, f, path)
	if err == nil {
		value, ok, err = lookUp(e.model, path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot look up %s: %w", formatPath(path), err)
	}
	return value, ok, nil
}

var byteOrderMark = []byte("\ufeff")

// editor holds a file during an edit.
type editor struct {
	syntax syntax
	bom    []byte // the byte order mark, or nil
	body   []byte // the text after it
	model  any    // the parsed body
}

// openEditor parses text. It fails for an empty path and for a text that is not valid.
func openEditor(text []byte, f Format, path []string) (*editor, error) {
	d, err := f.syntax()
	if err != nil {
		return nil, err
	}
	if len(path) == 0 {
		return nil, errors.New("the path is empty")
	}
	e := &editor{syntax: d, body: text}
	if bytes.HasPrefix(text, byteOrderMark) {
		e.bom, e.body = byteOrderMark, text[len(byteOrderMark):]
	}
	if e.model, err = d.parseText(e.body); err != nil {
		return nil, fmt.Errorf("the file is not valid %v: %w", f, err)
	}
	return e, nil
}

// step is a single change of a text.
type step struct {
	path   []string
	value  any
	remove bool
}

// planSteps lists the steps that turn the value old at path into v.
func planSteps(steps []step, path []string, old, v any) []step {
	before, ok := old.(Object)
	after, ok2 := v.(Object)
	if !ok || !ok2 {
		if equalValues(old, v) && v != nil { // setting a missing member to null is a step
			return steps
		}
		return append(steps, step{path: path, value: v})
	}
	for _, m := range before {
		if _, ok := after.member(m.Key); !ok {
			steps = append(steps, step{path: appendKey(path, m.Key), remove: true})
		}
	}
	for _, m := range after {
		if was, ok := before.member(m.Key); ok {
			if !equalValues(was, m.Value) {
				steps = planSteps(steps, appendKey(path, m.Key), was, m.Value)
			}
			continue
		}
		steps = append(steps, step{path: appendKey(path, m.Key), value: m.Value})
	}
	return steps
}

// appendKey returns path with key appended. It never overwrites memory that another path shares.
func appendKey(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

// applySteps applies the steps and returns the new text. It fails if the result does not satisfy
// wanted.
func (e *editor) applySteps(text []byte, steps []step, wanted func(any) bool) ([]byte, error) {
	if wanted(e.model) && len(steps) == 0 {
		return text, nil
	}
	body, model := e.body, e.model
	for _, s := range steps {
		var err error
		if s.remove {
			body, err = e.syntax.removeValue(body, model, s.path)
		} else {
			body, err = e.syntax.setValue(body, model, s.path, s.value)
		}
		if err != nil {
			return nil, err
		}
		if model, err = e.syntax.parseText(body); err != nil {
			return nil, fmt.Errorf("the result would not be valid (%w): %w", err, ErrUnsafe)
		}
	}
	if !wanted(model) {
		return nil, fmt.Errorf("something else would change with it: %w", ErrUnsafe)
	}
	return append(bytes.Clone(e.bom), body...), nil
}

// formatPath formats a path for messages.
func formatPath(path []string) string { return strings.Join(path, ".") }
