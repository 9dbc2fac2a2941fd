// Package edit changes single values in people's configuration files: JSON with comments, YAML and TOML. It touches the
// smallest span of text, and everything else keeps its bytes: comments, order, unknown keys, indentation, line ends, a byte
// order mark, a final line break or its absence, trailing commas.
//
// # Paths
//
// A path leads from the top of the file, which is an object, to a value. An element of it is the key of an object, or
// selects an entry of a list: [name=foo] is the entry whose member name is the string foo, as lists of servers have it.
// Where neither object nor list is there yet, an element of that form makes a list; to make an object with such a key,
// Set the object itself first. Null counts as not there.
//
// # Promises
//
// The result of an edit parses, has the asked-for value at the path, and is equal to what was before everywhere else. This is
// verified for each edit by reading the result; if it fails, the error wraps [ErrUnsafe] and no text is returned. That happens
// with what cannot be edited in one place, such as YAML's aliases, and with what is not supported: several YAML documents in one
// file, YAML's explicit keys ("? key"), a key that is there twice.
//
// A comment belongs to an entry, and goes with it when the entry is removed, if it stands behind it on the same line, or on
// lines directly above it with no blank line between. In YAML these must be indented like the entry, and comments below an
// entry that are indented deeper belong to it too; in TOML those directly below the last line of a table's section do. Comments
// that begin on the first line of the file belong to the file.
//
// All functions are pure, and safe for concurrent use.
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

// The formats. JSON may have comments and trailing commas; commas are put where the file has such ones.
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

// FormatOf tells a file's format by the ending of its name: .json, .jsonc, .json5 (as far as it is JSON with comments), .yaml,
// .yml and .toml.
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

// ErrUnsafe is wrapped by the error of an edit that would change something else, or that is not supported: the file must be
// edited by hand.
var ErrUnsafe = errors.New("it has to be edited by hand")

// dialect is what is special to a format. Texts are without a byte order mark; values are of the types that [normal] returns.
type dialect interface {
	parse(text []byte) (any, error)

	// set gives the value at path, or makes it with all that leads there. model is what text parses to. It is never asked to
	// replace an object by an object.
	set(text []byte, model any, path []string, value any) ([]byte, error)

	// remove removes the value at path, which is there.
	remove(text []byte, model any, path []string) ([]byte, error)
}

func (f Format) dialect() (dialect, error) {
	switch f {
	case JSON:
		return jsonDialect{}, nil
	case YAML:
		return yamlDialect{}, nil
	case TOML:
		return tomlDialect{}, nil
	}
	return nil, fmt.Errorf("edit: there is no %v", f)
}

// Set returns text with the value at path set. On a path that is there only the value's text changes; if the old and the new
// value are both objects, only that of the members that differ, so that the others keep their comments and their order. On
// a path that is not there the value is put behind its last sibling, in the style of the file, with the objects or tables that
// lead to it; text may be empty. If the value is already as asked, text is returned as it is.
//
// A value is nil (not in TOML), a bool, a string, any integer or float type, a json.Number, an [Object] (whose members are
// written in this order), a map with string keys (written in the order of its keys), or a slice of values. An entry of a
// list selected by [name=foo] is an object; its name need not be among its members.
func Set(text []byte, f Format, path []string, value any) ([]byte, error) {
	result, err := set(text, f, path, value)
	if err != nil {
		return nil, fmt.Errorf("cannot set %s: %w", display(path), err)
	}
	return result, nil
}

func set(text []byte, f Format, path []string, value any) ([]byte, error) {
	v, err := normal(value)
	if err != nil {
		return nil, err
	}
	e, err := open(text, f, path)
	if err != nil {
		return nil, err
	}
	if v, err = complete(e.model, path, v); err != nil {
		return nil, err
	}
	want, err := assign(e.model, path, v)
	if err != nil {
		return nil, err
	}
	old, _, err := find(e.model, path)
	if err != nil {
		return nil, err
	}
	return e.run(text, plan(nil, path, old, v), func(got any) bool { return equal(got, want) })
}

// Remove returns text without the value at path: the entry with its key, its own lines or its place in a line, its comma, and
// its comments. What contained it stays, even if it is empty now; in TOML it is gone with its last table. If there is nothing at path,
// text is returned as it is.
func Remove(text []byte, f Format, path []string) ([]byte, error) {
	result, err := remove(text, f, path)
	if err != nil {
		return nil, fmt.Errorf("cannot remove %s: %w", display(path), err)
	}
	return result, nil
}

func remove(text []byte, f Format, path []string) ([]byte, error) {
	e, err := open(text, f, path)
	if err != nil {
		return nil, err
	}
	if _, ok, err := find(e.model, path); err != nil || !ok {
		return text, err
	}
	want := without(e.model, path)
	return e.run(text, []step{{path: path, remove: true}}, func(got any) bool {
		return equal(got, want) || f == TOML && equalWithoutEmpty(got, want, path)
	})
}

// Lookup returns the value at path: nil, a bool, a string, an int64, uint64 or float64, an [Object], an []any, or, for a date or
// time in TOML, a [Literal].
func Lookup(text []byte, f Format, path []string) (value any, ok bool, err error) {
	e, err := open(text, f, path)
	if err == nil {
		value, ok, err = find(e.model, path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot look up %s: %w", display(path), err)
	}
	return value, ok, nil
}

var byteOrderMark = []byte("\ufeff")

// editor is a file that is being edited.
type editor struct {
	dialect dialect
	mark    []byte // the byte order mark, if there is one
	body    []byte // the text behind it
	model   any    // what it says
}

func open(text []byte, f Format, path []string) (*editor, error) {
	d, err := f.dialect()
	if err != nil {
		return nil, err
	}
	if len(path) == 0 {
		return nil, errors.New("the path is empty")
	}
	e := &editor{dialect: d, body: text}
	if bytes.HasPrefix(text, byteOrderMark) {
		e.mark, e.body = byteOrderMark, text[len(byteOrderMark):]
	}
	if e.model, err = d.parse(e.body); err != nil {
		return nil, fmt.Errorf("the file is no valid %v: %w", f, err)
	}
	return e, nil
}

// step is a change that a dialect makes.
type step struct {
	path   []string
	value  any
	remove bool
}

// plan lists the steps from the old value at path to the new one.
func plan(steps []step, path []string, old, v any) []step {
	before, ok := old.(Object)
	after, ok2 := v.(Object)
	if !ok || !ok2 {
		if equal(old, v) && v != nil { // setting null on what is not there is a step
			return steps
		}
		return append(steps, step{path: path, value: v})
	}
	for _, m := range before {
		if _, ok := after.member(m.Key); !ok {
			steps = append(steps, step{path: below(path, m.Key), remove: true})
		}
	}
	for _, m := range after {
		if was, ok := before.member(m.Key); ok {
			if !equal(was, m.Value) {
				steps = plan(steps, below(path, m.Key), was, m.Value)
			}
			continue
		}
		steps = append(steps, step{path: below(path, m.Key), value: m.Value})
	}
	return steps
}

func below(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

// run makes the steps and returns the new text if it is as wanted.
func (e *editor) run(text []byte, steps []step, wanted func(any) bool) ([]byte, error) {
	if wanted(e.model) && len(steps) == 0 {
		return text, nil
	}
	body, model := e.body, e.model
	for _, s := range steps {
		var err error
		if s.remove {
			body, err = e.dialect.remove(body, model, s.path)
		} else {
			body, err = e.dialect.set(body, model, s.path, s.value)
		}
		if err != nil {
			return nil, err
		}
		if model, err = e.dialect.parse(body); err != nil {
			return nil, fmt.Errorf("the result would not be valid (%w): %w", err, ErrUnsafe)
		}
	}
	if !wanted(model) {
		return nil, fmt.Errorf("something else would change with it: %w", ErrUnsafe)
	}
	return append(bytes.Clone(e.mark), body...), nil
}

// display writes a path for people.
func display(path []string) string { return strings.Join(path, ".") }
