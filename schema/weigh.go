package schema

import (
	"encoding/json"
	"strconv"
)

// weigher estimates what the library does for each subschema.
type weigher struct{ survey *survey }

// cost is the work for one subschema on one value: once, and for each item,
// member or 16 bytes of text. It covers the subschemas right below, as far as
// the library comes in them before it checks a format.
type cost struct {
	once, each int
	deep       bool // uniqueItems looks at all that is below
}

func (c cost) of(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
	case []any:
		n = len(v)
		if c.deep {
			n += 4 * size(v)
		}
	case string:
		n = len(v) / 16
	case json.Number:
		n = len(v) / 16
	}
	return c.once + n*c.each
}

// size is how many values there are in v.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += size(member)
		}
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case string:
		n += len(v) / 16
	}
	return n
}

// repeated are the keywords whose subschema applies to many items or members.
var repeated = map[string]bool{
	"items": true, "additionalItems": true, "contains": true, "unevaluatedItems": true,
	"additionalProperties": true, "patternProperties": true, "propertyNames": true, "unevaluatedProperties": true,
}

func (w weigher) cost(t *tree) cost {
	c := cost{once: w.own(t), each: 1}
	for _, m := range t.members {
		below := 0
		for _, sub := range w.below(m) {
			below += w.own(sub)
		}
		if repeated[m.name] {
			c.each += below
		} else {
			c.once += below
		}
		if m.name == "pattern" {
			c.each += len(m.value.raw) / 4
		}
		c.deep = c.deep || m.name == "uniqueItems" && m.value.kind == 't'
	}
	return c
}

// own is the weight of a subschema without those below it.
func (w weigher) own(t *tree) int {
	n := len(t.raw)
	subs := 0
	for _, m := range t.members {
		if m.name == "$ref" {
			continue
		}
		for _, sub := range w.below(m) {
			n -= len(sub.raw)
			subs++
		}
	}
	return 1 + subs + n/16
}

// below are the subschemas of a keyword, that of a $ref included.
func (w weigher) below(m member) []*tree {
	if m.name == "$ref" {
		if target, err := w.survey.root.resolve(m.value.text); err == nil {
			return []*tree{target}
		}
	}
	return m.subschemas()
}

func formatName(i int) string { return "step " + strconv.Itoa(i) }

// document is the schema in the library's form. Each subschema's format is the
// one that counts its steps.
func (w weigher) document(root *tree) (any, error) {
	index := make(map[*tree]int, len(w.survey.order))
	for i, t := range w.survey.order {
		index[t] = i
	}
	return w.rewrite(root, index)
}

func (w weigher) rewrite(t *tree, index map[*tree]int) (any, error) {
	i, isSchema := index[t]
	switch t.kind {
	case '{':
		object := make(map[string]any, len(t.members)+1)
		for _, m := range t.members {
			var err error
			if object[m.name], err = w.rewrite(m.value, index); err != nil {
				return nil, err
			}
		}
		if isSchema && len(t.members) > 0 {
			object["format"] = formatName(i)
			if d, err := dialectOf(t); err == nil && object["$schema"] != nil {
				object["$schema"] = drafts[d].String()
			}
		}
		return object, nil
	case '[':
		array := make([]any, len(t.items))
		for i, item := range t.items {
			var err error
			if array[i], err = w.rewrite(item, index); err != nil {
				return nil, err
			}
		}
		return array, nil
	}
	return t.plain()
}
