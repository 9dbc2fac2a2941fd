package uritemplate

import "strings"

// Match returns variables for which the template expands to the URI, or to an equivalent one. ok is
// false if it finds none.
//
//   - {x} is one segment, not empty: any characters but /, ? and #. All characters may be
//     percent-encoded; values are decoded.
//   - {+x} is not empty and may span segments. It also takes ? and #, unless the template itself
//     has them further on. {#x} is everything after a #.
//   - {/x}, {.x}, {;x}, {?x}, {&x} and {#x} are undefined if their first character is missing. {/x}
//     stays within a segment.
//   - {?x,y}, {&x,y} and {;x,y} match parameters in any order and number. An unknown name prevents
//     a match, and so does a repeated name unless it is exploded.
//   - Of several variables in one expression ({x,y}, {/x,y}) the last ones may be missing.
//   - {x*} is a list: of the items between the operator's separators (of the segments in {/x*}), or
//     of the values of the parameters named x. Parameters that the expression does not name become
//     the associative array of its first exploded variable without a parameter of that name.
//     Without the star, a list is a string with commas.
//   - {x:3} is at most 3 characters, the beginning of x. A variable that occurs twice has one
//     value.
//
// If variables can share the URI in several ways, an earlier variable takes as much as possible. A
// URI with malformed percent-encoding or control characters matches nothing. A value can hold any
// characters, encoded or not: check it with [SafePath] before it names a file.
func (t *Template) Match(uri string) (Values, bool) {
	if len(uri) > MaxURI {
		return nil, false
	}
	m := matcher{t: t, uri: uri}
	bits := 2 * (len(t.parts) + 1) * (len(uri) + 1)
	var few [64]uint64
	if words := (bits + 63) / 64; words <= len(few) {
		m.failed = few[:words]
	} else if len(t.parts) > 0 && !t.startsWithLiteral(uri) {
		return nil, false
	} else {
		m.failed = make([]uint64, words)
	}
	if !m.matchFrom(0, 0) {
		return nil, false
	}
	return t.readValues(uri, &m.spans)
}

// startsWithLiteral reports whether the URI starts with the literal text with which the template
// starts, if it starts with any. Match asks before it allocates memory for a long URI.
func (t *Template) startsWithLiteral(uri string) bool {
	return !t.parts[0].isLiteral() || literalEnd(uri, 0, t.parts[0].literal) >= 0
}

// matcher finds where in the URI the parts are. It backtracks, but marks each
// state from which there is no match, so that it tries none of them twice.
// There are two states for each part and position: before the part, and in
// the part's run.
type matcher struct {
	t      *Template
	uri    string
	failed []uint64           // bit set of the states from which there is no match
	spans  [MaxVariables]span // by part.slot
}

// span is the place of a part's run in the URI. end is 0 if the part is absent. No run ends at 0,
// because each is not empty or follows the part's lead.
type span struct{ start, end int }

// markState marks a state as failed, and reports whether it was not marked before. A state is
// marked before it is tried, because a match ends the search.
func (m *matcher) markState(part, at, inRun int) bool {
	state := uint((part*(len(m.uri)+1)+at)*2 + inRun)
	if m.failed[state/64]&(1<<(state%64)) != 0 {
		return false
	}
	m.failed[state/64] |= 1 << (state % 64)
	return true
}

// matchFrom matches everything from a part on. Its recursion is as deep as there are parts.
func (m *matcher) matchFrom(index, at int) bool {
	for {
		if index == len(m.t.parts) {
			return at == len(m.uri)
		}
		p := &m.t.parts[index]
		if !p.isLiteral() {
			break
		}
		if at = literalEnd(m.uri, at, p.literal); at < 0 {
			return false
		}
		index++
	}
	if !m.markState(index, at, 0) {
		return false
	}
	p := &m.t.parts[index]
	switch {
	case p.lead == 0:
		first := m.nextEnd(at, p.stops)
		return first > 0 && m.matchRun(index, at, first)
	case at < len(m.uri) && m.uri[at] == p.lead && m.matchRun(index, at+1, at+1):
		return true
	}
	return m.matchFrom(p.absent, at)
}

// matchRun tries the ends of a part's run, the longest first, down to least. An end that was tried
// before has failed, and so have all longer ones, which were tried with it.
func (m *matcher) matchRun(index, start, least int) bool {
	p := &m.t.parts[index]
	longest := 0
	for end := least; end > 0 && m.markState(index, end, 1); end = m.nextEnd(end, p.stops) {
		longest = end
	}
	for end := longest; end >= least; end = m.previousEnd(end) {
		if m.matchFrom(index+1, end) {
			m.spans[p.slot] = span{start, end}
			return true
		}
	}
	return false
}

// nextEnd returns where the character or triplet at a position ends, or 0 if it
// cannot be in a run with these stops. No run ends within a triplet.
func (m *matcher) nextEnd(at int, stops class) int {
	switch {
	case at == len(m.uri) || classes[m.uri[at]]&stops != 0:
		return 0
	case m.uri[at] != '%':
		return at + 1
	case isTriplet(m.uri[at:]):
		return at + 3
	}
	return 0
}

// previousEnd returns the position from which nextEnd goes to a position.
func (m *matcher) previousEnd(at int) int {
	if at >= 3 && m.uri[at-3] == '%' {
		return at - 3
	}
	return at - 1
}

// literalEnd returns where literal text that starts at a position ends, or -1
// if it is not there. The hex digits of triplets may differ in case.
func literalEnd(uri string, at int, literal string) int {
	end := at + len(literal)
	if end > len(uri) {
		return -1
	}
	found := uri[at:end]
	if found == literal {
		return end
	}
	if strings.IndexByte(literal, '%') < 0 {
		return -1
	}
	for i := 0; i < len(literal); i++ {
		if isTriplet(literal[i:]) && isTriplet(found[i:]) {
			if !strings.EqualFold(literal[i:i+3], found[i:i+3]) {
				return -1
			}
			i += 2
		} else if literal[i] != found[i] {
			return -1
		}
	}
	return end
}

// Matches reports whether the text is a valid template that matches uri.
func Matches(template, uri string) bool {
	t, err := Parse(template)
	if err != nil {
		return false
	}
	_, ok := t.Match(uri)
	return ok
}
