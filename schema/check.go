package schema

import (
	"slices"
	"unicode/utf8"
)

// check validates JSON text against nodes. It runs in one of two ways: deciding
// (it stops at the first fault), and, after a value was found to be invalid,
// explaining (it goes on, and collects the faults).
type check struct {
	scan
	steps      int // what is left of the work bound
	explaining *explanation
	scopes     []*scope // the resources that the check is in, from the outermost
}

// spend takes n from the work bound, and reports whether any is left.
func (c *check) spend(n int) bool {
	c.steps -= n
	return c.steps >= 0
}

// value checks the value at i. It returns the index after it, or fail.
func (c *check) value(n *node, i int) int {
	if n == nil {
		return c.pass(i)
	}
	for n.direct != nil {
		n = n.direct
	}
	if n.scope != nil && !c.in(n.scope) {
		return c.scoped(n, i)
	}
	if !c.spend(1) || c.explaining.full() {
		return fail
	}
	kind := kindAt[c.at(i)]
	if kind == 0 {
		return c.noValue(i)
	}
	if n.never {
		return c.refuse(i, faultOther, "must not be present")
	}
	if n.types != 0 && n.types&kind == 0 && (kind != isNumber || n.types&isInteger == 0) {
		return c.wrongType(n, i)
	}
	end := fail
	switch kind {
	case isObject:
		if n.obj == nil {
			end = c.pass(i)
		} else {
			end = c.object(n.obj, i)
		}
	case isArray:
		if n.arr == nil {
			end = c.pass(i)
		} else {
			end = c.array(n.arr, i)
		}
	case isString:
		end = c.string(n, i)
	case isNumber:
		return c.number(n, i)
	default:
		end = c.pass(i)
	}
	if end < 0 || n.enum == nil && n.apply == nil {
		return end
	}
	if kind != isString && n.enum != nil && !c.member(n, kind, i, end) {
		return fail
	}
	return c.applied(n, i, end)
}

// pass skips the value at i. Where it was read before, that costs.
func (c *check) pass(i int) int {
	end := c.skip(i)
	if c.trusted > 0 && !c.spend((end-i)/16) {
		return fail
	}
	return end
}

// applied goes on, after the value's own rules, with what n.apply has.
func (c *check) applied(n *node, i, end int) int {
	if n.apply != nil && !c.applyAll(n, i) {
		return fail
	}
	return end
}

// refuse is for a value of which nothing further is to be said.
func (c *check) refuse(i int, f fault, format string, args ...any) int {
	if c.explaining == nil {
		return fail
	}
	c.explaining.add(f, format, args...)
	return c.pass(i)
}

func (c *check) wrongType(n *node, i int) int {
	if c.explaining == nil {
		return fail
	}
	end := c.skip(i)
	c.explaining.wrongType(n.types, c.data[i:end])
	return end
}

func (c *check) string(n *node, i int) int {
	end, flags := c.text(i)
	if end < 0 || !c.spend((end-i)/64) {
		return fail
	}
	if n.str == nil && n.enum == nil {
		return end
	}
	text, m := c.data[i+1:end-1], c.mark()
	if flags&hasEscape != 0 {
		text = c.unescape(text)
	}
	ok := n.str == nil || c.stringRule(n.str, text, flags)
	if ok && n.enum != nil && !n.enum.hasString(text) {
		ok = c.notMember(n, i, end)
	}
	if flags&hasEscape != 0 {
		c.names.text = c.names.text[:m.text]
	}
	if !ok {
		return fail
	}
	return end
}

func (c *check) stringRule(r *stringRule, text []byte, flags textFlags) bool {
	if r.minLength >= 0 || r.maxLength >= 0 {
		length := len(text)
		if flags != 0 {
			length = utf8.RuneCount(text)
		}
		if length < r.minLength && !c.fault("must be at least %s long (got %d)", count(r.minLength, "character"), length) {
			return false
		}
		if r.maxLength >= 0 && length > r.maxLength && !c.fault("must be at most %s long (got %d)", count(r.maxLength, "character"), length) {
			return false
		}
	}
	if r.pattern == nil {
		return true
	}
	if !c.spend(len(text)/4 + len(r.patternText)/4) {
		return false
	}
	return r.pattern.Match(text) || c.fault("must match the pattern %s (got %s)", r.patternText, quoted(text))
}

// fault records a fault. It reports whether the check goes on.
func (c *check) fault(format string, args ...any) bool {
	if c.explaining == nil {
		return false
	}
	c.explaining.add(faultOther, format, args...)
	return true
}

func (c *check) number(n *node, i int) int {
	end, whole := c.scan.number(i)
	if end < 0 {
		return fail
	}
	text := c.data[i:end]
	if n.types&(isInteger|isNumber) == isInteger && !whole && !parseDecimal(text).integer() {
		return c.wrongType(n, i)
	}
	if n.num != nil && !c.numberRule(n.num, text) {
		return fail
	}
	if n.enum != nil && !c.member(n, isNumber, i, end) {
		return fail
	}
	return c.applied(n, i, end)
}

func (c *check) numberRule(r *numberRule, text []byte) bool {
	if !c.spend(len(text) / 64) {
		return false
	}
	if r.minimum != nil && r.minimum.compare(text) < 0 && !c.fault("must be at least %s (got %s)", r.minimum.text, shown(text)) {
		return false
	}
	if r.maximum != nil && r.maximum.compare(text) > 0 && !c.fault("must be at most %s (got %s)", r.maximum.text, shown(text)) {
		return false
	}
	if r.above != nil && r.above.compare(text) <= 0 && !c.fault("must be greater than %s (got %s)", r.above.text, shown(text)) {
		return false
	}
	if r.below != nil && r.below.compare(text) >= 0 && !c.fault("must be less than %s (got %s)", r.below.text, shown(text)) {
		return false
	}
	return r.multipleOf == nil || c.multiple(r.multipleOf, text)
}

func (c *check) multiple(of *number, text []byte) bool {
	switch yes, ok := of.divides(text); {
	case yes:
		return true
	case !ok:
		return c.fault("has too many digits to check that it is a multiple of %s", of.text)
	}
	return c.fault("must be a multiple of %s (got %s)", of.text, shown(text))
}

// member checks a value that is not a string against enum and const.
func (c *check) member(n *node, kind kinds, i, end int) bool {
	e, ok := n.enum, false
	switch kind {
	case isNull:
		ok = e.literals&isNull != 0
	case isBoolean:
		ok = c.data[i] == 't' && e.yes || c.data[i] == 'f' && e.no
	case isNumber:
		if !c.spend(len(e.numbers) * (1 + (end-i)/64) / 8) {
			return false
		}
		for _, other := range e.numbers {
			if ok = other.compare(c.data[i:end]) == 0; ok {
				break
			}
		}
	default:
		ok = len(e.hashes) > 0 && c.hasHash(e.hashes, i)
	}
	return ok || c.notMember(n, i, end)
}

func (c *check) hasHash(hashes []uint64, i int) bool {
	c.trusted++
	end, hash := c.hash(i)
	c.trusted--
	return c.spend((end-i)/16+len(hashes)/8) && slices.Contains(hashes, hash)
}

func (c *check) notMember(n *node, i, end int) bool {
	if c.explaining == nil {
		return false
	}
	c.explaining.notMember(n.enum, c.data[i:end])
	return true
}
