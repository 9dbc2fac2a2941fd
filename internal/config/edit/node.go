package edit

import (
	"fmt"
)

type kind int

const (
	scalar kind = iota // any value without children that can be edited
	object
	list
)

// node is the place of a value in a text.
type node struct {
	kind       kind
	start, end int
	items      []item

	// For values in brackets: the positions after the opening and at the closing bracket.
	open, close int

	// For YAML values without brackets: the column where the items begin.
	block  bool
	column int
}

// item is a member of an object or an element of a list.
type item struct {
	key        string
	start, end int   // including the key or dash
	after      int   // the position after the colon, equals sign or dash; otherwise start
	value      *node // start and end are equal if the value is left out
}

// location is the result of following a path in a text.
type location struct {
	container *node    // nil for the value of the whole file
	index     int      // the item in the container; -1 if it does not exist
	node      *node    // the deepest existing value on the path
	model     any      // the parsed value of node
	rest      []string // the part of the path that does not exist
	holders   []holder // the containers on the path with their items, the innermost last
}

type holder struct {
	container *node
	index     int
}

// locatePath follows path from root as far as it exists. model is the parsed value of root.
func locatePath(root *node, model any, path []string) (location, error) {
	p := location{index: -1, node: root, model: model}
	for n, element := range path {
		if p.model == nil {
			p.rest = path[n:]
			return p, nil
		}
		i, err := childIndex(p.model, element)
		if err != nil {
			return location{}, err
		}
		_, isObject := p.model.(Object)
		if want := map[bool]kind{true: object, false: list}[isObject]; p.node.kind != want {
			return location{}, fmt.Errorf("the container of %q is written elsewhere: %w", element, ErrUnsafe)
		}
		at := i
		if isObject {
			at = p.node.memberIndex(element)
		}
		if at < 0 && i >= 0 || at >= len(p.node.items) {
			return location{}, fmt.Errorf("%q is written elsewhere: %w", element, ErrUnsafe)
		}
		p.container, p.index = p.node, at
		if i < 0 {
			p.index, p.rest = -1, path[n:]
			return p, nil
		}
		p.holders = append(p.holders, holder{p.node, at})
		p.node, p.model = p.node.items[at].value, nthChild(p.model, i)
	}
	return p, nil
}

func (n *node) memberIndex(key string) int {
	for i := range n.items {
		if n.items[i].key == key {
			return i
		}
	}
	return -1
}

// eachNode calls f for n and all nodes below it.
func (n *node) eachNode(f func(*node)) {
	f(n)
	for i := range n.items {
		n.items[i].value.eachNode(f)
	}
}
