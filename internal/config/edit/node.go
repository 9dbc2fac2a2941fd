package edit

import (
	"fmt"
)

type kind int

const (
	scalar kind = iota // anything that has no children that can be edited
	object
	list
)

// node is where a value lies in a text.
type node struct {
	kind       kind
	start, end int
	items      []item

	// In brackets: the positions behind the opening and at the closing one.
	open, close int

	// In YAML, without brackets: the column where the items begin.
	block  bool
	column int
}

// item is a member of an object or an element of a list.
type item struct {
	key        string
	start, end int   // with its key or dash
	after      int   // behind the colon, the equals sign or the dash; start if there is none
	value      *node // start and end are equal where the value is left out
}

// place is where a path leads in a text.
type place struct {
	container *node    // nil for the value of the file
	index     int      // the item in the container; -1 if there is none yet
	node      *node    // the value there, or the file's
	model     any      // what it says
	rest      []string // of the path, what is not there yet
	holders   []holder // the containers on the way, with their items, the innermost last
}

type holder struct {
	container *node
	index     int
}

// locate follows path from root, which model is the value of, as far as it is there.
func locate(root *node, model any, path []string) (place, error) {
	p := place{index: -1, node: root, model: model}
	for n, element := range path {
		if p.model == nil {
			p.rest = path[n:]
			return p, nil
		}
		i, err := child(p.model, element)
		if err != nil {
			return place{}, err
		}
		_, isObject := p.model.(Object)
		if want := map[bool]kind{true: object, false: list}[isObject]; p.node.kind != want {
			return place{}, fmt.Errorf("what contains %q is written elsewhere: %w", element, ErrUnsafe)
		}
		at := i
		if isObject {
			at = p.node.member(element)
		}
		if at < 0 && i >= 0 || at >= len(p.node.items) {
			return place{}, fmt.Errorf("%q is written elsewhere: %w", element, ErrUnsafe)
		}
		p.container, p.index = p.node, at
		if i < 0 {
			p.index, p.rest = -1, path[n:]
			return p, nil
		}
		p.holders = append(p.holders, holder{p.node, at})
		p.node, p.model = p.node.items[at].value, nth(p.model, i)
	}
	return p, nil
}

func (n *node) member(key string) int {
	for i := range n.items {
		if n.items[i].key == key {
			return i
		}
	}
	return -1
}

// walk calls f for n and all below it.
func (n *node) walk(f func(*node)) {
	f(n)
	for i := range n.items {
		n.items[i].value.walk(f)
	}
}
