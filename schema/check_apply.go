package schema

// savedState is the state to restore before a check reads a value again.
type savedState struct {
	mark    mark
	depth   int
	trusted int
}

func (c *check) saveState() savedState { return savedState{c.markNames(), c.depth, c.trusted} }

func (c *check) restoreState(p savedState) {
	if c.names != nil {
		clear(c.names.stack[p.mark.names:])
		c.names.stack, c.names.text = c.names.stack[:p.mark.names], c.names.text[:p.mark.text]
	}
	c.depth, c.trusted = p.depth, p.trusted
}

// acceptsValue reports whether n accepts the value at i, which was read before. It
// explains nothing.
func (c *check) acceptsValue(n *node, i int) bool {
	saved, explaining := c.saveState(), c.explaining
	c.trusted++
	c.explaining = nil
	end := c.checkValue(n, i)
	c.explaining = explaining
	c.restoreState(saved)
	return end >= 0
}

// checkAgain checks the value at i, which was read before, against one more node.
func (c *check) checkAgain(n *node, i int) bool {
	c.trusted++
	end := c.checkValue(n, i)
	c.trusted--
	return end >= 0
}

func (c *check) applyAll(n *node, i int) bool {
	a := n.apply
	if a.ref != nil && !c.checkAgain(a.ref, i) {
		return false
	}
	for _, one := range a.all {
		if !c.checkAgain(one, i) {
			return false
		}
	}
	if a.hasAny && !c.checkAnyOf(a, i) || a.hasOne && !c.checkOneOf(a, i) {
		return false
	}
	if a.hasNot && c.acceptsValue(a.not, i) && !c.addFault("must not match the schema under not") {
		return false
	}
	if a.hasCond && !c.checkConditional(a, i) || a.dynamic != nil && !c.checkAgain(c.resolveDynamic(a.dynamic), i) {
		return false
	}
	return a.rest == nil || c.checkUnevaluated(n, i)
}

func (c *check) checkConditional(a *applyRule, i int) bool {
	if c.acceptsValue(a.cond, i) {
		return c.checkAgain(a.then, i)
	}
	return c.checkAgain(a.other, i)
}

func (c *check) checkAnyOf(a *applyRule, i int) bool {
	for _, n := range a.any {
		if c.acceptsValue(n, i) {
			return true
		}
	}
	return c.explainNoneOf(a.any, i)
}

func (c *check) checkOneOf(a *applyRule, i int) bool {
	first := -1
	for k, n := range a.one {
		if !c.acceptsValue(n, i) {
			continue
		}
		if first >= 0 {
			return c.addFault("must match exactly one of the alternatives, but matches number %d and number %d", first+1, k+1)
		}
		first = k
	}
	return first >= 0 || c.explainNoneOf(a.one, i)
}

// explainNoneOf records that the value at i matches none of the alternatives.
func (c *check) explainNoneOf(alternatives []*node, i int) bool {
	outer := c.explaining
	if outer == nil {
		return false
	}
	var failures []*explanation
	for _, n := range alternatives {
		saved := c.saveState()
		c.explaining = &explanation{path: outer.path, base: len(outer.path)}
		c.checkAgain(n, i)
		failures = append(failures, c.explaining)
		c.restoreState(saved)
	}
	c.explaining = outer
	end := c.skipValue(i)
	outer.addNoAlternative(failures, c.data[i:end])
	return true
}
