package schema

// place is what a check needs to know to take up a value again.
type place struct {
	mark    mark
	depth   int
	trusted int
}

func (c *check) save() place { return place{c.mark(), c.depth, c.trusted} }

func (c *check) restore(p place) {
	if c.names != nil {
		clear(c.names.stack[p.mark.names:])
		c.names.stack, c.names.text = c.names.stack[:p.mark.names], c.names.text[:p.mark.text]
	}
	c.depth, c.trusted = p.depth, p.trusted
}

// holds reports whether n accepts the value at i, which was read before. It
// explains nothing.
func (c *check) holds(n *node, i int) bool {
	here, explaining := c.save(), c.explaining
	c.trusted++
	c.explaining = nil
	end := c.value(n, i)
	c.explaining = explaining
	c.restore(here)
	return end >= 0
}

// again checks the value at i, which was read before, against one more node.
func (c *check) again(n *node, i int) bool {
	c.trusted++
	end := c.value(n, i)
	c.trusted--
	return end >= 0
}

func (c *check) applyAll(n *node, i int) bool {
	a := n.apply
	if a.ref != nil && !c.again(a.ref, i) {
		return false
	}
	for _, one := range a.all {
		if !c.again(one, i) {
			return false
		}
	}
	if a.hasAny && !c.anyOf(a, i) || a.hasOne && !c.oneOf(a, i) {
		return false
	}
	if a.hasNot && c.holds(a.not, i) && !c.fault("must not match the schema under not") {
		return false
	}
	if a.hasCond && !c.conditional(a, i) || a.dynamic != nil && !c.again(c.target(a.dynamic), i) {
		return false
	}
	return a.rest == nil || c.unevaluated(n, i)
}

func (c *check) conditional(a *applyRule, i int) bool {
	if c.holds(a.cond, i) {
		return c.again(a.then, i)
	}
	return c.again(a.other, i)
}

func (c *check) anyOf(a *applyRule, i int) bool {
	for _, n := range a.any {
		if c.holds(n, i) {
			return true
		}
	}
	return c.noneOf(a.any, i)
}

func (c *check) oneOf(a *applyRule, i int) bool {
	first := -1
	for k, n := range a.one {
		if !c.holds(n, i) {
			continue
		}
		if first >= 0 {
			return c.fault("must match exactly one of the alternatives, but matches number %d and number %d", first+1, k+1)
		}
		first = k
	}
	return first >= 0 || c.noneOf(a.one, i)
}

// noneOf records that the value at i matches none of the alternatives.
func (c *check) noneOf(alternatives []*node, i int) bool {
	outer := c.explaining
	if outer == nil {
		return false
	}
	var failures []*explanation
	for _, n := range alternatives {
		here := c.save()
		c.explaining = &explanation{path: outer.path, base: len(outer.path)}
		c.again(n, i)
		failures = append(failures, c.explaining)
		c.restore(here)
	}
	c.explaining = outer
	end := c.skip(i)
	outer.noAlternative(failures, c.data[i:end])
	return true
}
