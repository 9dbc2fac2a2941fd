package schema

import (
	"slices"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// check validates JSON text against nodes. It runs in one of two modes. When it decides, it stops
// at the first fault. When it explains, after a value was found invalid, it continues after a fault
// and collects all of them.
type check struct {
	scan
	steps      int // remaining work
	explaining *explanation
	scopes     []*scope // the resources that the check is in, from the outermost
}

// spendSteps takes n from the work bound, and reports whether any is left. A step costs about as
// much as one subschema applied to one small value. The callers count other work in the same unit,
// by what a processor does in that time: comparing or skipping 64 bytes, hashing or copying 16
// bytes, matching a pattern with 4 to 8 bytes, looking at 4 children of a value. The first reading
// of a value is free, because the bound already grows with its length.
func (c *check) spendSteps(n int) bool {
	c.steps -= n
	return c.steps >= 0
}

// checkValue checks the value at i. It returns the index after it, or fail.
func (c *check) checkValue(n *node, i int) int {
	if n == nil {
		return c.passValue(i)
	}
	for n.direct != nil {
		n = n.direct
	}
	if n.scope != nil && !c.inScope(n.scope) {
		return c.checkInScope(n, i)
	}
	if !c.spendSteps(1) || c.explaining.isFull() {
		return fail
	}
	kind := kindAt[c.byteAt(i)]
	if kind == 0 {
		return c.noValue(i)
	}
	if n.never {
		return c.refuseValue(i, faultOther, "must not be present")
	}
	if n.types != 0 && n.types&kind == 0 && (kind != isNumber || n.types&isInteger == 0) {
		return c.wrongType(n, i)
	}
	var end int
	switch kind {
	case isObject:
		end = c.checkObject(n.obj, i)
	case isArray:
		end = c.checkArray(n.arr, i)
	case isString:
		end = c.checkString(n, i)
	case isNumber:
		return c.checkNumber(n, i)
	default:
		end = c.passValue(i)
	}
	if end < 0 || n.enum == nil && n.apply == nil {
		return end
	}
	if kind != isString && n.enum != nil && !c.checkEnum(n, kind, i, end) {
		return fail
	}
	return c.applyRest(n, i, end)
}

// passValue skips the value at i. It spends steps only if the value was read before: the work bound
// includes the first reading.
func (c *check) passValue(i int) int {
	end := c.skipValue(i)
	if c.trusted > 0 && !c.spendSteps((end-i)/16) {
		return fail
	}
	return end
}

// applyRest applies n.apply to the value between i and end, after the value's own rules.
func (c *check) applyRest(n *node, i, end int) int {
	if n.apply != nil && !c.applyAll(n, i) {
		return fail
	}
	return end
}

// refuseValue records one fault for the value at i, and skips the value without checking its parts.
func (c *check) refuseValue(i int, f fault, format string, args ...any) int {
	if c.explaining == nil {
		return fail
	}
	c.explaining.addIssue(f, format, args...)
	return c.passValue(i)
}

func (c *check) wrongType(n *node, i int) int {
	if c.explaining == nil {
		return fail
	}
	end := c.skipValue(i)
	c.explaining.addWrongType(n.types, c.data[i:end])
	return end
}

func (c *check) checkString(n *node, i int) int {
	end, content := c.readString(i)
	if end < 0 || !c.spendSteps((end-i)/64) {
		return fail
	}
	if n.str == nil && n.enum == nil {
		return end
	}
	text, m := c.data[i+1:end-1], c.markNames()
	if content&rawjson.HasEscape != 0 {
		text = c.unescape(c.data[i:end])
	}
	ok := n.str == nil || c.checkStringRule(n.str, text, content)
	if ok && n.enum != nil && !n.enum.hasString(text) {
		ok = c.notMember(n, i, end)
	}
	if content&rawjson.HasEscape != 0 {
		c.names.text = c.names.text[:m.text]
	}
	if !ok {
		return fail
	}
	return end
}

func (c *check) checkStringRule(r *stringRule, text []byte, content rawjson.StringContent) bool {
	if r.minLength >= 0 || r.maxLength >= 0 {
		length := len(text)
		if content != 0 {
			length = utf8.RuneCount(text)
		}
		if length < r.minLength && !c.addFault("must be at least %s long (got %d)", countNoun(r.minLength, "character"), length) {
			return false
		}
		if r.maxLength >= 0 && length > r.maxLength && !c.addFault("must be at most %s long (got %d)", countNoun(r.maxLength, "character"), length) {
			return false
		}
	}
	if r.pattern == nil {
		return true
	}
	if !c.spendSteps(len(text)/4 + len(r.patternText)/4) {
		return false
	}
	return r.pattern.Match(text) || c.addFault("must match the pattern %s (got %s)", r.patternText, quoteText(text))
}

// addFault records a fault. It reports whether the check continues, which it does only to explain.
func (c *check) addFault(format string, args ...any) bool {
	if c.explaining == nil {
		return false
	}
	c.explaining.addIssue(faultOther, format, args...)
	return true
}

func (c *check) checkNumber(n *node, i int) int {
	end, whole := c.scan.readNumber(i)
	if end < 0 {
		return fail
	}
	text := c.data[i:end]
	if n.types&(isInteger|isNumber) == isInteger && !whole && !parseDecimal(text).isInteger() {
		return c.wrongType(n, i)
	}
	if n.num != nil && !c.checkNumberRule(n.num, text) {
		return fail
	}
	if n.enum != nil && !c.checkEnum(n, isNumber, i, end) {
		return fail
	}
	return c.applyRest(n, i, end)
}

func (c *check) checkNumberRule(r *numberRule, text []byte) bool {
	if !c.spendSteps(len(text) / 64) {
		return false
	}
	if r.minimum != nil && r.minimum.compareText(text) < 0 && !c.addFault("must be at least %s (got %s)", r.minimum.text, describeValue(text)) {
		return false
	}
	if r.maximum != nil && r.maximum.compareText(text) > 0 && !c.addFault("must be at most %s (got %s)", r.maximum.text, describeValue(text)) {
		return false
	}
	if r.above != nil && r.above.compareText(text) <= 0 && !c.addFault("must be greater than %s (got %s)", r.above.text, describeValue(text)) {
		return false
	}
	if r.below != nil && r.below.compareText(text) >= 0 && !c.addFault("must be less than %s (got %s)", r.below.text, describeValue(text)) {
		return false
	}
	return r.multipleOf == nil || c.checkMultiple(r.multipleOf, text)
}

func (c *check) checkMultiple(of *number, text []byte) bool {
	switch yes, ok := of.dividesText(text); {
	case yes:
		return true
	case !ok:
		return c.addFault("has too many digits to check that it is a multiple of %s", of.text)
	}
	return c.addFault("must be a multiple of %s (got %s)", of.text, describeValue(text))
}

// checkEnum checks a value that is not a string against enum and const.
func (c *check) checkEnum(n *node, kind kinds, i, end int) bool {
	e, ok := n.enum, false
	switch kind {
	case isNull:
		ok = e.literals&isNull != 0
	case isBoolean:
		ok = c.data[i] == 't' && e.yes || c.data[i] == 'f' && e.no
	case isNumber:
		if !c.spendSteps(len(e.numbers) * (1 + (end-i)/64) / 8) {
			return false
		}
		for _, other := range e.numbers {
			if ok = other.compareText(c.data[i:end]) == 0; ok {
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
	end, hash := c.hashValue(i)
	c.trusted--
	return c.spendSteps((end-i)/16+len(hashes)/8) && slices.Contains(hashes, hash)
}

func (c *check) notMember(n *node, i, end int) bool {
	if c.explaining == nil {
		return false
	}
	c.explaining.addNotInEnum(n.enum, c.data[i:end])
	return true
}
