package schema

import (
	"fmt"
	"math"
	"slices"
)

// checkChains refuses documents in which a subschema applies itself to the same value, or in which
// a chain of more than maxChain subschemas apply each other to one value.
func checkChains(nodes map[*tree]*node) error {
	heights := make(map[*node]int) // math.MaxInt during its own computation
	for _, n := range nodes {
		if err := checkChain(n, heights); err != nil {
			return err
		}
	}
	return nil
}

func checkChain(n *node, heights map[*node]int) error {
	if n == nil || n.apply == nil && (n.obj == nil || n.obj.dependent == nil) {
		return nil
	}
	switch h, ok := heights[n]; {
	case h == math.MaxInt:
		return fmt.Errorf("%w: a subschema refers to itself without going into the value", ErrUnsupported)
	case ok:
		return nil
	}
	heights[n] = math.MaxInt
	height := 0
	for _, sub := range n.inPlace() {
		if err := checkChain(sub, heights); err != nil {
			return err
		}
		height = max(height, heights[sub])
	}
	if height++; height > maxChain {
		return fmt.Errorf("%w: more than %d subschemas apply each other to one value", ErrUnsupported, maxChain)
	}
	heights[n] = height
	return nil
}

// inPlace returns the subschemas that apply to the same value, except the targets of dynamic
// references, which depend on the path of a validation.
func (n *node) inPlace() (all []*node) {
	if a := n.apply; a != nil {
		fixed := []*node{a.ref, a.not, a.cond, a.then, a.other}
		all = slices.Concat(fixed, a.all, a.any, a.one)
	}
	if n.obj != nil {
		for _, d := range n.obj.dependent {
			all = append(all, d.node)
		}
	}
	return all
}
