package schema

import "strconv"

// restRule holds unevaluatedProperties and unevaluatedItems: the rules for children that no other
// keyword has evaluated. A nil node accepts everything; has… tells whether the keyword is there.
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

// checkUnevaluated checks the members or items of the value at i that no other keyword of n has
// evaluated. The other keywords of n must have accepted the value. They do not record which
// children they have evaluated, so checkUnevaluated determines them again.
func (c *check) checkUnevaluated(n *node, i int) bool {
	r, object := n.apply.rest, c.byteAt(i) == '{'
	if !r.takes(c.byteAt(i)) || c.explaining != nil && len(c.explaining.issues) > 0 {
		return true
	}
	all := c.listChildren(i)
	c.markOwnEvaluated(n, i, all)
	next := r.items
	if object {
		next = r.properties
	}
	for k, each := range all {
		if c.steps < 0 || !each.evaluated && !c.checkChild(next, each, k, object) {
			return false
		}
	}
	return true
}

// checkChild checks an unevaluated child against n. index is its position, object says whether it
// is a member.
func (c *check) checkChild(n *node, each child, index int, object bool) bool {
	if c.explaining == nil {
		return c.checkAgain(n, each.at)
	}
	name := each.name
	if !object {
		name = strconv.Itoa(index)
	}
	c.explaining.enterPath(name)
	ok := c.checkAgain(n, each.at)
	c.explaining.leavePath()
	return ok
}

// listChildren returns the members or items of the value at i. The syntax of the value was checked
// before. Each child costs a step for its entry in the list and one for every 64 bytes to skip.
func (c *check) listChildren(i int) (all []child) {
	saved := c.saveState()
	defer c.restoreState(saved)
	c.trusted++
	object := c.byteAt(i) == '{'
	for i = c.enterNested(i); c.byteAt(i) != '}' && c.byteAt(i) != ']'; {
		each := child{at: i}
		if object {
			name, value := c.readKey(i)
			each.name, each.at = string(name), value
		}
		all = append(all, each)
		end := c.skipValue(each.at)
		if !c.spendSteps(1 + (end-i)/64) {
			return all
		}
		if i = c.skipSpace(end); c.byteAt(i) == ',' {
			i = c.skipSpace(i + 1)
		}
	}
	return all
}

// markEvaluated sets evaluated for the children of the value at i that the subschema n evaluates. n
// must have accepted the value. It costs one step for n and one for every 4 children, because n
// may visit each of them; without that, many subschemas over a long list would be nearly free.
func (c *check) markEvaluated(n *node, i int, all []child) {
	if n == nil || !c.spendSteps(1+len(all)/4) {
		return
	}
	for n.direct != nil {
		n = n.direct
	}
	if n.scope != nil && !c.inScope(n.scope) && len(c.scopes) < maxScopes {
		c.scopes = append(c.scopes, n.scope)
		defer func() { c.scopes = c.scopes[:len(c.scopes)-1] }()
	}
	if n.apply != nil && n.apply.rest.takes(c.byteAt(i)) {
		for k := range all {
			all[k].evaluated = true
		}
		return
	}
	c.markOwnEvaluated(n, i, all)
}

// takes reports whether the rule applies to a value with this first byte.
func (r *restRule) takes(first byte) bool {
	return r != nil && (first == '{' && r.hasProperties || first == '[' && r.hasItems)
}

// markOwnEvaluated is markEvaluated without the unevaluated keywords of n itself.
func (c *check) markOwnEvaluated(n *node, i int, all []child) {
	switch object := c.byteAt(i) == '{'; {
	case object && n.obj != nil:
		c.markMembers(n.obj, i, all)
	case !object && n.arr != nil:
		c.markItems(n.arr, all)
	}
	if n.apply != nil {
		c.markApplied(n.apply, i, all)
	}
}

// markMembers marks the members to which a keyword of o applies.
func (c *check) markMembers(o *objectRule, i int, all []child) {
	for k := range all {
		f := o.findField([]byte(all[k].name))
		all[k].evaluated = all[k].evaluated || o.hasAdditional || f >= 0 && o.fields[f].declared
		for _, p := range o.patterns {
			if !all[k].evaluated && c.spendSteps(1+len(all[k].name)/8) { // as patternProperty does
				all[k].evaluated = p.pattern.MatchString(all[k].name)
			}
		}
	}
	for _, d := range o.dependent {
		if d.node != nil && c.hasMember(d.name, i) {
			c.markEvaluated(d.node, i, all)
		}
	}
}

// markItems marks the items to which a keyword of r applies.
func (c *check) markItems(r *arrayRule, all []child) {
	for k := range all {
		if r.hasItems || k < len(r.prefix) || r.takesContained && !all[k].evaluated && c.acceptsValue(r.contains, all[k].at) {
			all[k].evaluated = true
		}
	}
}

// markApplied marks the children that the subschemas of a evaluate. Of anyOf, oneOf and if, only
// the subschemas that accept the value count.
func (c *check) markApplied(a *applyRule, i int, all []child) {
	c.markEvaluated(a.ref, i, all)
	if a.dynamic != nil {
		c.markEvaluated(c.resolveDynamic(a.dynamic), i, all)
	}
	for _, n := range a.all {
		c.markEvaluated(n, i, all)
	}
	for _, alternatives := range [][]*node{a.any, a.one} {
		for _, n := range alternatives {
			if n != nil && c.acceptsValue(n, i) {
				c.markEvaluated(n, i, all)
			}
		}
	}
	switch {
	case !a.hasCond:
	case c.acceptsValue(a.cond, i):
		c.markEvaluated(a.cond, i, all)
		c.markEvaluated(a.then, i, all)
	default:
		c.markEvaluated(a.other, i, all)
	}
}
