package config

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFile and maxDepth limit the files that are read. No real configuration reaches them.
const (
	maxFile  = 16 << 20
	maxDepth = 500
)

type nodeKind uint8

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// node is a value of a file in any format.
type node struct {
	kind    nodeKind
	text    string // a string's value; a number or boolean as written
	items   []*node
	members []member // each key once, at its first position with its last value
	start   int      // byte offset in the file
	at      Position
}

type member struct {
	key   *node
	value *node
}

// member returns the value of a key, or nil.
func (n *node) member(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key.text == key {
			return m.value
		}
	}
	return nil
}

// path returns the value at a path of keys, or nil.
func (n *node) path(keys ...string) *node {
	for _, key := range keys {
		n = n.member(key)
	}
	return n
}

func (n *node) is(k nodeKind) bool { return n != nil && n.kind == k }

// parseNumber returns the value of a number. ok is false if n is not a finite number.
func (n *node) parseNumber() (float64, bool) {
	text := strings.ReplaceAll(n.text, "_", "")
	if i, err := strconv.ParseInt(text, 0, 64); err == nil && n.kind == numberNode {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && n.kind == numberNode && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// document is the text of a file while it is parsed.
type document struct {
	path      string
	text      []byte // without the byte order mark
	bomLength int    // the length of the byte order mark
	lines     []int  // the start of each line in text
	problems  []Problem
	index     map[*node]map[string]int // the keys of large objects
}

// parseFile parses a file. The extension of path determines the format; without one it is JSON. A
// file without content is an empty object. The tree is nil if the problems make the file
// unreadable.
func parseFile(path string, text []byte) (*node, []Problem) {
	d := newDocument(path, text)
	if !d.isLegible(text) {
		return nil, d.problems
	}
	var root *node
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		root = d.parseYAML()
	case ".toml":
		root = d.parseTOML()
	default:
		root = d.parseJSON()
	}
	if root.is(nullNode) {
		root.kind = objectNode
	}
	return root, d.problems
}

func newDocument(path string, text []byte) *document {
	rest := bytes.TrimPrefix(text, []byte("\ufeff"))
	d := &document{path: path, text: rest, bomLength: len(text) - len(rest), lines: []int{0}}
	for i, c := range rest {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	return d
}

// isLegible reports whether the text is UTF-8 of a reasonable size.
func (d *document) isLegible(whole []byte) bool {
	switch {
	case len(d.text) > maxFile:
		d.failf(0, "the file has %d MiB: a configuration of more than %d MiB is not read", len(d.text)>>20, maxFile>>20)
	case bytes.HasPrefix(whole, []byte{0xff, 0xfe}) || bytes.HasPrefix(whole, []byte{0xfe, 0xff}):
		d.failf(0, "the file is UTF-16: save it as UTF-8")
	case !utf8.Valid(d.text):
		d.failf(invalidUTF8(d.text), "a byte here is not UTF-8: save the file as UTF-8")
	default:
		return true
	}
	return false
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

// positionOf returns the position of an offset in text.
func (d *document) positionOf(offset int) Position {
	offset = min(max(offset, 0), len(d.text))
	line, found := slices.BinarySearch(d.lines, offset)
	if !found {
		line--
	}
	return Position{Path: d.path, Line: line + 1, Column: utf8.RuneCount(d.text[d.lines[line]:offset]) + 1}
}

// offsetOf is the inverse of positionOf. A position outside the text yields its nearest end.
func (d *document) offsetOf(line, column int) int {
	if line < 1 {
		return 0
	}
	if line > len(d.lines) {
		return len(d.text)
	}
	at := d.lines[line-1]
	for ; column > 1 && at < len(d.text) && d.text[at] != '\n'; column-- {
		_, n := utf8.DecodeRune(d.text[at:])
		at += n
	}
	return at
}

func (d *document) newNode(k nodeKind, offset int, text string) *node {
	return &node{kind: k, text: text, start: d.bomLength + offset, at: d.positionOf(offset)}
}

// failf records an error that makes the file unreadable.
func (d *document) failf(offset int, format string, args ...any) {
	d.problems = append(d.problems, Problem{Severity: Error, Position: d.positionOf(offset), Message: fmt.Sprintf(format, args...)})
}

// putMember adds a member to an object. If the key occurs twice, the last value counts, as in the
// tools' parsers, and a problem is recorded.
func (d *document) putMember(object, key, value *node) {
	if i := d.findKey(object, key.text); i >= 0 {
		d.problems = append(d.problems, Problem{
			Severity: Error, Position: key.at,
			Message: fmt.Sprintf("the key %q occurs twice", key.text),
			Hint:    fmt.Sprintf("the first one is in line %d; this one counts, so remove one of them", object.members[i].key.at.Line),
		})
		object.members[i] = member{key, value}
		return
	}
	if keys := d.index[object]; keys != nil {
		keys[key.text] = len(object.members)
	}
	object.members = append(object.members, member{key, value})
}

// getMember is [node.member] for objects that may be large.
func (d *document) getMember(object *node, key string) *node {
	if object != nil {
		if i := d.findKey(object, key); i >= 0 {
			return object.members[i].value
		}
	}
	return nil
}

// findKey returns the index of a key in an object, or -1.
func (d *document) findKey(object *node, key string) int {
	if len(object.members) < 16 {
		return slices.IndexFunc(object.members, func(m member) bool { return m.key.text == key })
	}
	keys := d.index[object]
	if keys == nil {
		keys = map[string]int{}
		for i, m := range object.members {
			keys[m.key.text] = i
		}
		if d.index == nil {
			d.index = map[*node]map[string]int{}
		}
		d.index[object] = keys
	}
	if i, ok := keys[key]; ok {
		return i
	}
	return -1
}
