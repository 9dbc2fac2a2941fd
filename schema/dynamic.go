package schema

import (
	"slices"
	"strings"
)

// scope is a resource that a check has entered, with the nodes of its dynamic anchors. A nil node
// accepts everything.
type scope struct{ anchors map[string]*node }

// dynamicRef is a $dynamicRef or $recursiveRef. It refers to the anchor of the outermost resource
// that has this anchor, among the resources that the check has entered.
type dynamicRef struct {
	name  string
	node  *node // where none has it
	fixed bool  // it is like a $ref
}

// dynamicRef compiles one of the two keywords. Where a document is one resource
// the reference can mean one thing only, and so does one that leads to no
// dynamic anchor.
func (k *compiler) dynamicRef(m member) (*dynamicRef, error) {
	n, err := k.compileRef(m.value)
	if err != nil {
		return nil, err
	}
	d := &dynamicRef{node: n, fixed: true}
	target := k.survey.targets[m.value]
	if m.name == "$dynamicRef" {
		_, d.name, _ = strings.Cut(m.value.text, "#")
	}
	if anchors := k.survey.homes[target].dynamic; anchors[d.name] == target && (d.name != "" || m.name == "$recursiveRef") {
		d.fixed = k.scopes == nil
	}
	return d, nil
}

// scopeOf returns the scope of a resource, or nil if the document has no dynamic references.
func (k *compiler) scopeOf(r *resource) *scope {
	if k.scopes == nil {
		return nil
	}
	if k.scopes[r] == nil {
		k.scopes[r] = new(scope)
	}
	return k.scopes[r]
}

// fillScopes is for when all nodes are known.
func (k *compiler) fillScopes() {
	for r, s := range k.scopes {
		s.anchors = make(map[string]*node, len(r.dynamic))
		for name, t := range r.dynamic {
			s.anchors[name] = k.nodes[t]
		}
	}
}

// inScope reports whether the check is in the resource.
func (c *check) inScope(s *scope) bool {
	n := len(c.scopes)
	return n > 0 && c.scopes[n-1] == s
}

// maxScopes bounds the resources that a check has entered, because dynamic references can form a
// cycle that only a validation finds.
const maxScopes = maxDepth * 16

// checkInScope is value in the resource that n is of.
func (c *check) checkInScope(n *node, i int) int {
	if len(c.scopes) == maxScopes {
		c.steps = -1
		return fail
	}
	c.scopes = append(c.scopes, n.scope)
	end := c.checkValue(n, i)
	c.scopes = c.scopes[:len(c.scopes)-1]
	return end
}

// resolveDynamic returns the target of a dynamic reference in the resources that the check has
// entered.
func (c *check) resolveDynamic(d *dynamicRef) *node {
	if !d.fixed {
		at := slices.IndexFunc(c.scopes, func(s *scope) bool { _, ok := s.anchors[d.name]; return ok })
		if at >= 0 {
			return c.scopes[at].anchors[d.name]
		}
	}
	return d.node
}
