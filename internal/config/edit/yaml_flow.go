package edit

// flowNode reads what is in brackets at pos.
func (s *yamlScan) flowNode(n *node) {
	if s.depth++; s.depth > maxDepth {
		s.fail("it is nested deeper than %d levels", maxDepth)
	}
	defer func() { s.depth-- }()
	closing := "]"
	n.kind, n.start, n.open = list, s.pos, s.pos+1
	if s.text[s.pos] == '{' {
		n.kind, closing = object, "}"
	}
	s.pos++
	for s.err == nil {
		s.pos = s.space(s.pos)
		if s.at(s.pos, closing) {
			n.close = s.pos
			s.pos++
			n.end = s.pos
			return
		}
		if s.pos >= len(s.text) {
			break
		}
		n.items = append(n.items, s.flowItem(n.kind))
		s.pos = s.space(s.pos)
		if s.at(s.pos, ",") {
			s.pos++
		} else if !s.at(s.pos, closing) {
			break
		}
	}
	s.fail("brackets do not end")
}

func (s *yamlScan) flowItem(k kind) item {
	if s.indicator("?") {
		s.fail("it has explicit keys")
	}
	it := item{start: s.pos, after: s.pos}
	first := s.flowValue()
	it.value, it.end = first, s.pos
	colon := s.space(s.pos)
	if !s.at(colon, ":") {
		if k == object { // a key without a value
			it.key = s.decodeKey(it.start, first.end)
			it.value = &node{start: first.end, end: first.end}
		}
		return it
	}
	s.pos = colon + 1
	value := s.flowValue()
	it.end = s.pos
	if k == list { // [key: value] is an object, which is not edited
		it.value = &node{start: it.start, end: it.end}
		return it
	}
	it.key, it.after, it.value = s.decodeKey(it.start, first.end), colon+1, value
	return it
}

// flowValue reads a value within brackets. s.pos is behind it afterwards.
func (s *yamlScan) flowValue() *node {
	n := &node{start: s.pos, end: s.pos}
	for s.err == nil {
		pos := s.space(s.pos)
		if pos >= len(s.text) || s.at(pos, ",]}") {
			return n
		}
		s.pos = pos
		if !s.at(s.pos, "&!") {
			break
		}
		for !s.gapAt(s.pos) && !s.at(s.pos, ",]}") {
			s.pos++
		}
		n.start, n.end = s.pos, s.pos
	}
	n.start = s.pos
	switch {
	case s.err != nil:
	case s.at(s.pos, "{["):
		s.flowNode(n)
	case s.at(s.pos, `"'`):
		s.pos = s.quoted(s.pos)
	default:
		s.flowPlain()
	}
	n.end = s.pos
	return n
}

// flowPlain passes a scalar without quotes.
func (s *yamlScan) flowPlain() {
	start := s.pos
	for ; s.pos < len(s.text) && !s.at(s.pos, ",[]{}"); s.pos++ {
		if s.text[s.pos] == ':' && (s.gapAt(s.pos+1) || s.at(s.pos+1, ",[]{}")) {
			break
		}
		if s.text[s.pos] == '#' && isSpace(s.text[s.pos-1]) {
			break
		}
	}
	s.pos = trimmed(s.text, start, s.pos)
	if s.pos == start && !s.at(s.pos, ":") {
		s.fail("brackets hold what is not understood")
	}
}
