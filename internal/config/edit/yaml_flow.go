package edit

// scanFlow reads the value in brackets at pos.
func (s *yamlScan) scanFlow(n *node) {
	if s.depth++; s.depth > maxDepth {
		s.setError("it is nested deeper than %d levels", maxDepth)
	}
	defer func() { s.depth-- }()
	closing := "]"
	n.kind, n.start, n.open = list, s.pos, s.pos+1
	if s.text[s.pos] == '{' {
		n.kind, closing = object, "}"
	}
	s.pos++
	for s.err == nil {
		s.pos = s.skipSpace(s.pos)
		if s.isAt(s.pos, closing) {
			n.close = s.pos
			s.pos++
			n.end = s.pos
			return
		}
		if s.pos >= len(s.text) {
			break
		}
		n.items = append(n.items, s.scanFlowItem(n.kind))
		s.pos = s.skipSpace(s.pos)
		if s.isAt(s.pos, ",") {
			s.pos++
		} else if !s.isAt(s.pos, closing) {
			break
		}
	}
	s.setError("brackets do not end")
}

func (s *yamlScan) scanFlowItem(k kind) item {
	if s.isIndicator("?") {
		s.setError("it has explicit keys")
	}
	it := item{start: s.pos, after: s.pos}
	first := s.scanFlowValue()
	it.value, it.end = first, s.pos
	colon := s.skipSpace(s.pos)
	if !s.isAt(colon, ":") {
		if k == object { // a key without a value
			it.key = s.decodeKey(it.start, first.end)
			it.value = &node{start: first.end, end: first.end}
		}
		return it
	}
	s.pos = colon + 1
	value := s.scanFlowValue()
	it.end = s.pos
	if k == list { // [key: value] is an object, which is not edited
		it.value = &node{start: it.start, end: it.end}
		return it
	}
	it.key, it.after, it.value = s.decodeKey(it.start, first.end), colon+1, value
	return it
}

// scanFlowValue reads a value inside brackets and moves pos behind it.
func (s *yamlScan) scanFlowValue() *node {
	n := &node{start: s.pos, end: s.pos}
	for s.err == nil {
		pos := s.skipSpace(s.pos)
		if pos >= len(s.text) || s.isAt(pos, ",]}") {
			return n
		}
		s.pos = pos
		if !s.isAt(s.pos, "&!") {
			break
		}
		for !s.isGap(s.pos) && !s.isAt(s.pos, ",]}") {
			s.pos++
		}
		n.start, n.end = s.pos, s.pos
	}
	n.start = s.pos
	switch {
	case s.err != nil:
	case s.isAt(s.pos, "{["):
		s.scanFlow(n)
	case s.isAt(s.pos, `"'`):
		s.pos = s.endOfString(s.pos)
	default:
		s.skipFlowPlain()
	}
	n.end = s.pos
	return n
}

// skipFlowPlain skips a scalar without quotes.
func (s *yamlScan) skipFlowPlain() {
	start := s.pos
	for ; s.pos < len(s.text) && !s.isAt(s.pos, ",[]{}"); s.pos++ {
		if s.text[s.pos] == ':' && (s.isGap(s.pos+1) || s.isAt(s.pos+1, ",[]{}")) {
			break
		}
		if s.text[s.pos] == '#' && isSpace(s.text[s.pos-1]) {
			break
		}
	}
	s.pos = trimmedEnd(s.text, start, s.pos)
	if s.pos == start && !s.isAt(s.pos, ":") {
		s.setError("the text in brackets is not understood")
	}
}
