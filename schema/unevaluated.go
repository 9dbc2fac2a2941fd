package schema

import "strconv"

// restRule is for what no other keyword has evaluated: unevaluatedProperties
// and unevaluatedItems.
type restRule struct {
	properties, items       *node
	hasProperties, hasItems bool
}

// child is a member or an item of a value.
type child struct {
	name      string // of a member
	at        int    // where its value begins
	evaluated bool
}

// unevaluated checks the members or items of the value at i, which n accepts
// but for them, that no other keyword of n has evaluated. It looks again for
// what has: the check itself does not keep it.
func (c *check) unevaluated(n *node, i int) bool {
	r, object := n.apply.rest, c.at(i) == '{'
	if !r.takes(c.at(i)) || c.explaining != nil && len(c.explaining.issues) > 0 {
		return true
	}
	all := c.children(i)
	c.evaluatedHere(n, i, all)
	next := r.items
	if object {
		next = r.properties
	}
	for k, each := range all {
		if c.steps < 0 || !each.evaluated && !c.child(next, each, k, object) {
			return false
		}
	}
	return true
}

func (c *check) child(n *node, each child, index int, object bool) bool {
	if c.explaining == nil {
		return c.again(n, each.at)
	}
	name := each.name
	if !object {
		name = strconv.Itoa(index)
	}
	c.explaining.enter(name)
	ok := c.again(n, each.at)
	c.explaining.leave()
	return ok
}

// children are the members or items of the value at i, which was read before.
func (c *check) children(i int) (all []child) {
	here := c.save()
	defer c.restore(here)
	c.trusted++
	object := c.at(i) == '{'
	for i = c.enter(i); c.at(i) != '}' && c.at(i) != ']'; {
		each := child{at: i}
		if object {
			name, value := c.key(i)
			each.name, each.at = string(name), value
		}
		all = append(all, each)
		end := c.skip(each.at)
		if !c.spend(1 + (end-i)/64) {
			return all
		}
		if i = c.space(end); c.at(i) == ',' {
			i = c.space(i + 1)
		}
	}
	return all
}

// evaluated notes which of the children of the value at i the subschema n,
// which accepts the value, evaluates.
func (c *check) evaluated(n *node, i int, all []child) {
	if n == nil || !c.spend(1+len(all)/4) {
		return
	}
	for n.direct != nil {
		n = n.direct
	}
	if n.scope != nil && !c.in(n.scope) && len(c.scopes) < maxScopes {
		c.scopes = append(c.scopes, n.scope)
		defer func() { c.scopes = c.scopes[:len(c.scopes)-1] }()
	}
	if n.apply != nil && n.apply.rest.takes(c.at(i)) {
		for k := range all {
			all[k].evaluated = true
		}
		return
	}
	c.evaluatedHere(n, i, all)
}

// takes reports whether the rule is for a value that begins so.
func (r *restRule) takes(first byte) bool {
	return r != nil && (first == '{' && r.hasProperties || first == '[' && r.hasItems)
}

// evaluatedHere is evaluated without what n says of the rest.
func (c *check) evaluatedHere(n *node, i int, all []child) {
	switch object := c.at(i) == '{'; {
	case object && n.obj != nil:
		c.evaluatedMembers(n.obj, i, all)
	case !object && n.arr != nil:
		c.evaluatedItems(n.arr, all)
	}
	if n.apply != nil {
		c.evaluatedByOthers(n.apply, i, all)
	}
}

func (c *check) evaluatedMembers(o *objectRule, i int, all []child) {
	for k := range all {
		f := o.find([]byte(all[k].name))
		all[k].evaluated = all[k].evaluated || o.hasAdditional || f >= 0 && o.fields[f].declared
		for _, p := range o.patterns {
			if !all[k].evaluated && c.spend(1+len(all[k].name)/8) {
				all[k].evaluated = p.pattern.MatchString(all[k].name)
			}
		}
	}
	for _, d := range o.dependent {
		if d.node != nil && c.has(d.name, i) {
			c.evaluated(d.node, i, all)
		}
	}
}

func (c *check) evaluatedItems(r *arrayRule, all []child) {
	for k := range all {
		if r.hasItems || k < len(r.prefix) || r.takesContained && !all[k].evaluated && c.holds(r.contains, all[k].at) {
			all[k].evaluated = true
		}
	}
}

func (c *check) evaluatedByOthers(a *applyRule, i int, all []child) {
	c.evaluated(a.ref, i, all)
	if a.dynamic != nil {
		c.evaluated(c.target(a.dynamic), i, all)
	}
	for _, n := range a.all {
		c.evaluated(n, i, all)
	}
	for _, alternatives := range [][]*node{a.any, a.one} {
		for _, n := range alternatives {
			if n != nil && c.holds(n, i) {
				c.evaluated(n, i, all)
			}
		}
	}
	switch {
	case !a.hasCond:
	case c.holds(a.cond, i):
		c.evaluated(a.cond, i, all)
		c.evaluated(a.then, i, all)
	default:
		c.evaluated(a.other, i, all)
	}
}
