package schema

// object checks the object at i against o.
func (c *check) object(o *objectRule, i int) int {
	start := i
	if i = c.enter(i); i < 0 {
		return fail
	}
	m, count, required := c.mark(), 0, 0
	if c.at(i) == '}' {
		c.depth--
		i++
	} else {
		var seen uint64
		for next, more := 0, true; more; count++ {
			f, name, value := c.field(o, next, i)
			if value < 0 {
				return fail
			}
			if f >= 0 {
				next = f + 1
				if o.fields[f].required {
					required++
				}
			}
			if c.trusted == 0 && !c.first(m, f, &seen, name) {
				return c.malformed(i, "duplicate name in an object")
			}
			if o.plain && f >= 0 && c.explaining == nil {
				i = c.value(o.fields[f].node, value)
			} else {
				i = c.property(o, f, name, i, value)
			}
			if i < 0 {
				return fail
			}
			if i, more = c.next(i, '}'); i < 0 {
				return fail
			}
		}
		if !c.forget(m) {
			return c.malformed(i-1, "duplicate name in an object")
		}
	}
	if required < o.required && !c.missing(o, start) {
		return fail
	}
	if count < o.minProperties && !c.fault("must have at least %s (got %d)", plural(o.minProperties, "property", "properties"), count) {
		return fail
	}
	if o.maxProperties >= 0 && count > o.maxProperties && !c.fault("must have at most %s (got %d)", plural(o.maxProperties, "property", "properties"), count) {
		return fail
	}
	if o.dependent != nil && !c.dependent(o, start) {
		return fail
	}
	return i
}

// field reads the name at i and the colon. Members often come in the order of
// the fields, so next, the field after the last, is looked for as it is.
func (c *check) field(o *objectRule, next, i int) (f int, name []byte, value int) {
	if next < len(o.fields) {
		literal := o.fields[next].literal
		if end := i + len(literal); literal != "" && end < len(c.data) && string(c.data[i:end]) == literal {
			if end = c.space(end); c.at(end) == ':' {
				return next, c.data[i+1 : i+len(literal)-1], c.space(end + 1)
			}
		}
	}
	if name, value = c.key(i); value < 0 {
		return -1, nil, fail
	}
	return o.find(name), name, value
}

// first reports whether the object that began at m has the name for the first
// time. The names of the first fields, f, are kept as bits.
func (c *check) first(m mark, f int, seen *uint64, name []byte) bool {
	if f < 0 || f >= 64 {
		return c.remember(m, name)
	}
	bit := uint64(1) << f
	old := *seen
	*seen = old | bit
	return old&bit == 0
}

// property checks the member name, whose literal is at key and whose value at
// i, against whatever applies to it. f is its field, or -1.
func (c *check) property(o *objectRule, f int, name []byte, key, i int) int {
	if c.explaining == nil {
		return c.decideProperty(o, f, name, key, i)
	}
	c.explaining.enter(string(name))
	c.explaining.optional = f >= 0 && !o.fields[f].required
	end := c.decideProperty(o, f, name, key, i)
	c.explaining.leave()
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
			return c.value(o.fields[f].node, i)
		case o.additional != nil && o.additional.never:
			return c.unknown(o, string(name), i)
		}
		return c.value(o.additional, i)
	}
	end := fail
	if declared {
		if end = c.value(o.fields[f].node, i); end < 0 {
			return fail
		}
	}
	return c.patternProperty(o, name, i, end)
}

// patternProperty goes on with patternProperties, and additionalProperties if
// nothing has matched. end is fail where the value was not read yet.
func (c *check) patternProperty(o *objectRule, name []byte, i, end int) int {
	for k := range o.patterns {
		if !c.spend(1 + len(name)/8) {
			return fail
		}
		if !o.patterns[k].pattern.Match(name) {
			continue
		}
		if end >= 0 {
			c.trusted++
		}
		next := c.value(o.patterns[k].node, i)
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
		return c.unknown(o, string(name), i)
	}
	return c.value(o.additional, i)
}

func (c *check) propertyName(o *objectRule, key int) bool {
	c.trusted++
	if c.explaining != nil {
		c.explaining.subject = "its name "
	}
	end := c.value(o.names, key)
	if c.explaining != nil {
		c.explaining.subject = ""
	}
	c.trusted--
	return end >= 0
}

func (c *check) unknown(o *objectRule, name string, i int) int {
	if c.explaining == nil {
		return fail
	}
	c.explaining.unknown(o, name)
	return c.skip(i)
}

// missing records the required fields that the object at i lacks.
func (c *check) missing(o *objectRule, i int) bool {
	if c.explaining == nil {
		return false
	}
	present := c.memberNames(i)
	for _, f := range o.fields {
		if f.required && !present[f.name] {
			c.explaining.add(faultOther, "missing required property %s", quoted([]byte(f.name)))
		}
	}
	return true
}

// memberNames is the set of the names of the object at i.
func (c *check) memberNames(i int) map[string]bool {
	s := scan{data: c.data, trusted: 1}
	defer s.release()
	t, _ := s.tree(i)
	names := make(map[string]bool)
	for _, m := range t.members {
		names[m.name] = true
	}
	return names
}

// dependent checks what the presence of properties demands.
func (c *check) dependent(o *objectRule, i int) bool {
	for _, d := range o.dependent {
		if !c.has(d.name, i) {
			continue
		}
		for _, name := range d.required {
			if !c.has(name, i) && !c.fault("missing property %s, which %s requires", quoted([]byte(name)), quoted([]byte(d.name))) {
				return false
			}
		}
		if d.node != nil && !c.again(d.node, i) {
			return false
		}
	}
	return true
}

// has reports whether the object at i, which was read before, has the name.
func (c *check) has(name string, i int) bool {
	here := c.save()
	defer c.restore(here)
	c.trusted++
	i = c.enter(i)
	for more := c.at(i) != '}'; more; {
		got, value := c.key(i)
		if string(got) == name {
			return true
		}
		if i = c.skip(value); i < 0 || !c.spend(1+(i-value)/64) {
			return false
		}
		i, more = c.next(i, '}')
	}
	return false
}
