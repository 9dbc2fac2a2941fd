package schema

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a schema being written. Its members keep their order.
type object struct {
	typ     string // of the member type
	entries []entry
}

// entry is a member: one of raw, object, list and named is set.
type entry struct {
	name   string
	raw    []byte
	object *object
	list   []*object
	named  []namedSchema
}

type namedSchema struct {
	name   string
	object *object
}

func typedObject(name string) *object {
	return (&object{typ: name}).withRaw("type", `"`+name+`"`)
}

// withRaw sets a member to JSON text.
func (o *object) withRaw(name, raw string) *object { return o.withEntry(name, entry{raw: []byte(raw)}) }

func (o *object) withEntry(name string, e entry) *object {
	o.setEntry(name, e)
	return o
}

func (o *object) setEntry(name string, e entry) {
	e.name = name
	for i := range o.entries {
		if o.entries[i].name == name {
			o.entries[i] = e
			return
		}
	}
	o.entries = append(o.entries, e)
}

// setLeading sets a member that comes right behind the type.
func (o *object) setLeading(name, raw string) {
	e := entry{name: name, raw: []byte(raw)}
	o.removeEntry(name)
	at := 0
	for at < len(o.entries) && slices.Contains([]string{"type", "$ref", "title"}, o.entries[at].name) {
		at++
	}
	o.entries = slices.Insert(o.entries, at, e)
}

func (o *object) removeEntry(name string) {
	o.entries = slices.DeleteFunc(o.entries, func(e entry) bool { return e.name == name })
}

// getEntry is the member of that name, or nil.
func (o *object) getEntry(name string) *entry {
	for i := range o.entries {
		if o.entries[i].name == name {
			return &o.entries[i]
		}
	}
	return nil
}

func (o *object) clone() *object {
	return &object{typ: o.typ, entries: slices.Clone(o.entries)}
}

func (o *object) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, e := range o.entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, e.name), ':')
		switch {
		case e.object != nil:
			b = e.object.appendJSON(b)
		case e.list != nil:
			b = append(b, '[')
			for j, item := range e.list {
				if j > 0 {
					b = append(b, ',')
				}
				b = item.appendJSON(b)
			}
			b = append(b, ']')
		case e.raw != nil:
			b = append(b, e.raw...)
		default:
			b = appendNamed(b, e.named)
		}
	}
	return append(b, '}')
}

func appendNamed(b []byte, named []namedSchema) []byte {
	b = append(b, '{')
	for i, n := range named {
		if i > 0 {
			b = append(b, ',')
		}
		b = n.object.appendJSON(append(appendText(b, n.name), ':'))
	}
	return append(b, '}')
}

// appendText appends a string literal.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // replaces invalid UTF-8
	return b
}
