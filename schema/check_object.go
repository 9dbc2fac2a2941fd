package schema

// checkObject checks the object at i against o. nil accepts any object.
func (c *check) checkObject(o *objectRule, i int) int {
	if o == nil {
		return c.passValue(i)
	}
	start := i
	if i = c.enterNested(i); i < 0 {
		return fail
	}
	m, count, required := c.markNames(), 0, 0
	if c.byteAt(i) == '}' {
		c.depth--
		i++
	} else {
		var seen uint64
		for next, more := 0, true; more; count++ {
			f, name, value := c.readField(o, next, i)
			if value < 0 {
				return fail
			}
			if f >= 0 {
				next = f + 1
				if o.fields[f].required {
					required++
				}
			}
			if c.trusted == 0 && !c.isFirst(m, f, &seen, name) {
				return c.malformed(i, "duplicate name in an object")
			}
			if o.plain && f >= 0 && c.explaining == nil {
				i = c.checkValue(o.fields[f].node, value)
			} else {
				i = c.checkProperty(o, f, name, i, value)
			}
			if i < 0 {
				return fail
			}
			if i, more = c.readSeparator(i, '}'); i < 0 {
				return fail
			}
		}
		if !c.endObject(m) {
			return c.malformed(i-1, "duplicate name in an object")
		}
	}
	if required < o.required && !c.addMissing(o, start) || !c.checkCount(o, count) || o.dependent != nil && !c.checkDependent(o, start) {
		return fail
	}
	return i
}

// checkCount checks the number of members.
func (c *check) checkCount(o *objectRule, count int) bool {
	if count < o.minProperties && !c.addFault("must have at least %s (got %d)", plural(o.minProperties, "property", "properties"), count) {
		return false
	}
	return o.maxProperties < 0 || count <= o.maxProperties ||
		c.addFault("must have at most %s (got %d)", plural(o.maxProperties, "property", "properties"), count)
}

// readField reads the name at i and the colon. It returns the index of the name's field or -1, the
// name, and the index of the value. Members often come in the order of the fields, so readField
// first compares the text with the literal of field next, without parsing the name.
func (c *check) readField(o *objectRule, next, i int) (f int, name []byte, value int) {
	if next < len(o.fields) {
		literal := o.fields[next].literal
		if end := i + len(literal); literal != "" && end < len(c.data) && string(c.data[i:end]) == literal {
			if end = c.skipSpace(end); c.byteAt(end) == ':' {
				return next, c.data[i+1 : i+len(literal)-1], c.skipSpace(end + 1)
			}
		}
	}
	if name, value = c.readKey(i); value < 0 {
		return -1, nil, fail
	}
	return o.findField(name), name, value
}

// isFirst records a name of the object and reports whether it is the first of that name. Names of
// the fields 0 to 63 are recorded as bits of seen, other names in the list that begins at m. f is
// the name's field or -1.
func (c *check) isFirst(m mark, f int, seen *uint64, name []byte) bool {
	if f < 0 || f >= 64 {
		return c.addName(m, name)
	}
	bit := uint64(1) << f
	old := *seen
	*seen = old | bit
	return old&bit == 0
}

// checkProperty checks the member name against every rule that applies to it. key is the index of
// the name's literal, i the index of the value, f the index of the field or -1.
func (c *check) checkProperty(o *objectRule, f int, name []byte, key, i int) int {
	if c.explaining == nil {
		return c.decideProperty(o, f, name, key, i)
	}
	c.explaining.enterPath(string(name))
	c.explaining.optional = f >= 0 && !o.fields[f].required
	end := c.decideProperty(o, f, name, key, i)
	c.explaining.leavePath()
	return end
}

func (c *check) decideProperty(o *objectRule, f int, name []byte, key, i int) int {
	if o.hasNames && !c.propertyName(o, key) {
		return fail
	}
	declared := f >= 0 && o.fields[f].declared
	if o.patterns == nil {
		switch {
		case declared:
			return c.checkValue(o.fields[f].node, i)
		case o.additional != nil && o.additional.never:
			return c.refuseUnknown(o, string(name), i)
		}
		return c.checkValue(o.additional, i)
	}
	end := fail
	if declared {
		if end = c.checkValue(o.fields[f].node, i); end < 0 {
			return fail
		}
	}
	return c.patternProperty(o, name, i, end)
}

// patternProperty applies patternProperties, then additionalProperties if no pattern has matched.
// end is fail if the value has not been read yet.
func (c *check) patternProperty(o *objectRule, name []byte, i, end int) int {
	for k := range o.patterns {
		if !c.spendSteps(1 + len(name)/8) {
			return fail
		}
		if !o.patterns[k].pattern.Match(name) {
			continue
		}
		if end >= 0 {
			c.trusted++
		}
		next := c.checkValue(o.patterns[k].node, i)
		if end >= 0 {
			c.trusted--
		}
		if end = next; end < 0 {
			return fail
		}
	}
	switch {
	case end >= 0:
		return end
	case o.additional != nil && o.additional.never:
		return c.refuseUnknown(o, string(name), i)
	}
	return c.checkValue(o.additional, i)
}

func (c *check) propertyName(o *objectRule, key int) bool {
	c.trusted++
	if c.explaining != nil {
		c.explaining.subject = "its name "
	}
	end := c.checkValue(o.names, key)
	if c.explaining != nil {
		c.explaining.subject = ""
	}
	c.trusted--
	return end >= 0
}

func (c *check) refuseUnknown(o *objectRule, name string, i int) int {
	if c.explaining == nil {
		return fail
	}
	c.explaining.addUnknown(o, name)
	return c.skipValue(i)
}

// addMissing records the required fields that the object at i lacks.
func (c *check) addMissing(o *objectRule, i int) bool {
	if c.explaining == nil {
		return false
	}
	present := c.memberNames(i)
	for _, f := range o.fields {
		if f.required && !present[f.name] {
			c.explaining.addIssue(faultOther, "missing required property %s", quoteText([]byte(f.name)))
		}
	}
	return true
}

// memberNames returns the set of the names of the object at i.
func (c *check) memberNames(i int) map[string]bool {
	s := scan{data: c.data, trusted: 1}
	defer s.releaseNames()
	t, _ := s.buildTree(i)
	names := make(map[string]bool)
	for _, m := range t.members {
		names[m.name] = true
	}
	return names
}

// checkDependent checks the rules for objects that have a certain property.
func (c *check) checkDependent(o *objectRule, i int) bool {
	for _, d := range o.dependent {
		if !c.hasMember(d.name, i) {
			continue
		}
		for _, name := range d.required {
			if !c.hasMember(name, i) && !c.addFault("missing property %s, which %s requires", quoteText([]byte(name)), quoteText([]byte(d.name))) {
				return false
			}
		}
		if d.node != nil && !c.checkAgain(d.node, i) {
			return false
		}
	}
	return true
}

// hasMember reports whether the object at i, which was read before, has the name.
func (c *check) hasMember(name string, i int) bool {
	saved := c.saveState()
	defer c.restoreState(saved)
	c.trusted++
	i = c.enterNested(i)
	for more := c.byteAt(i) != '}'; more; {
		got, value := c.readKey(i)
		if string(got) == name {
			return true
		}
		if i = c.skipValue(value); i < 0 || !c.spendSteps(1+(i-value)/64) {
			return false
		}
		i, more = c.readSeparator(i, '}')
	}
	return false
}
