package uritemplate

import (
	"slices"
	"strings"
)

// Values are the variables of an expansion or a match by name. A variable that
// is missing is undefined.
type Values map[string]Value

// Value is the value of a variable: a string, a list or an associative array. The zero Value, an
// empty list and an empty array are undefined; an empty string is defined.
type Value struct {
	kind    kind
	partial bool // while matching: text was cut by a prefix modifier, so the value may be longer
	text    string
	items   []string // of a list; of an array each key and its value
}

type kind byte

const (
	undefined kind = iota
	isText
	isList
	isPairs
)

// Pair is an entry of an associative array.
type Pair struct{ Key, Value string }

// Text returns a string value.
func Text(s string) Value { return Value{kind: isText, text: s} }

// List returns a list value.
func List(items ...string) Value {
	if len(items) == 0 {
		return Value{}
	}
	return Value{kind: isList, items: slices.Clone(items)}
}

// Pairs returns an associative array in the order given.
func Pairs(pairs ...Pair) Value {
	if len(pairs) == 0 {
		return Value{}
	}
	v := Value{kind: isPairs}
	for _, p := range pairs {
		v.items = append(v.items, p.Key, p.Value)
	}
	return v
}

// Defined reports whether the value is defined.
func (v Value) Defined() bool { return v.kind != undefined }

// String returns a string value as it is, and otherwise the items, or the keys
// and values, with commas in between; "" if undefined.
func (v Value) String() string {
	if v.kind == isText {
		return v.text
	}
	return strings.Join(v.items, ",")
}

// Items returns a list's items, or a string as the only item; nil otherwise.
func (v Value) Items() []string {
	switch v.kind {
	case isText:
		return []string{v.text}
	case isList:
		return slices.Clone(v.items)
	}
	return nil
}

// Pairs returns the entries of an associative array in their order; nil for
// any other value.
func (v Value) Pairs() []Pair {
	if v.kind != isPairs {
		return nil
	}
	var pairs []Pair
	for entry := range slices.Chunk(v.items, 2) {
		pairs = append(pairs, Pair{entry[0], entry[1]})
	}
	return pairs
}
