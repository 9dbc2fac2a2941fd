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

// maxFile and maxDepth bound what is read: a configuration of that size or depth is none.
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

// node is a value of a file, whatever the file's format.
type node struct {
	kind    nodeKind
	text    string // of a string; a number or boolean as it is written
	items   []*node
	members []member // each key once, in the order of their first appearance; of a repeated key the last value
	start   int      // in bytes
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

// path returns what the keys lead to, or nil.
func (n *node) path(keys ...string) *node {
	for _, key := range keys {
		n = n.member(key)
	}
	return n
}

func (n *node) is(k nodeKind) bool { return n != nil && n.kind == k }

// number returns the value of a number that is finite.
func (n *node) number() (float64, bool) {
	text := strings.ReplaceAll(n.text, "_", "")
	if i, err := strconv.ParseInt(text, 0, 64); err == nil && n.kind == numberNode {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && n.kind == numberNode && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// document is the text of one file while it becomes a tree.
type document struct {
	path     string
	text     []byte // without a byte order mark
	mark     int    // the length of the byte order mark
	lines    []int  // where each line starts in text
	problems []Problem
	index    map[*node]map[string]int // where large objects have their keys
}

// parse makes a tree of a file. The tree is nil where the problems say that the file cannot be read; a file without content is an
// empty object. The format is that of the path's extension, JSON where there is none.
func parse(path string, text []byte) (*node, []Problem) {
	d := newDocument(path, text)
	if !d.legible(text) {
		return nil, d.problems
	}
	var root *node
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		root = d.yaml()
	case ".toml":
		root = d.toml()
	default:
		root = d.json()
	}
	if root.is(nullNode) {
		root.kind = objectNode
	}
	return root, d.problems
}

func newDocument(path string, text []byte) *document {
	rest := bytes.TrimPrefix(text, []byte("\ufeff"))
	d := &document{path: path, text: rest, mark: len(text) - len(rest), lines: []int{0}}
	for i, c := range rest {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	return d
}

// legible reports whether the text is text of a reasonable size.
func (d *document) legible(whole []byte) bool {
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

// position is that of an offset in text.
func (d *document) position(offset int) Position {
	offset = min(max(offset, 0), len(d.text))
	line, found := slices.BinarySearch(d.lines, offset)
	if !found {
		line--
	}
	return Position{Path: d.path, Line: line + 1, Column: utf8.RuneCount(d.text[d.lines[line]:offset]) + 1}
}

// offset is the inverse of position; a place outside the text is moved to its nearest end.
func (d *document) offset(line, column int) int {
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

func (d *document) node(k nodeKind, offset int, text string) *node {
	return &node{kind: k, text: text, start: d.mark + offset, at: d.position(offset)}
}

// failf records why the file cannot be read.
func (d *document) failf(offset int, format string, args ...any) {
	d.problems = append(d.problems, Problem{Severity: Error, Position: d.position(offset), Message: fmt.Sprintf(format, args...)})
}

// put adds a member to an object. Of a repeated key the last value counts, as in the parsers of the tools; that the first one
// does not is a problem.
func (d *document) put(object, key, value *node) {
	if i := d.find(object, key.text); i >= 0 {
		d.problems = append(d.problems, Problem{
			Severity: Error, Position: key.at,
			Message: fmt.Sprintf("the key %q is there twice", key.text),
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

// get is [node.member] for objects that may be large.
func (d *document) get(object *node, key string) *node {
	if object != nil {
		if i := d.find(object, key); i >= 0 {
			return object.members[i].value
		}
	}
	return nil
}

// find returns where an object has a key, or -1.
func (d *document) find(object *node, key string) int {
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
