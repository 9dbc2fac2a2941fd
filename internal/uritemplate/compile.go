package uritemplate

// part is a step of matching: literal text, the run of characters of one variable, or a whole
// expression of named variables.
type part struct {
	literal  string
	variable variable
	named    []variable // of ?, & or ;
	slot     int        // among the parts that are not literal
	lead     byte       // comes before the run; 0 for nothing
	split    byte       // separates an exploded variable's items, or named variables
	stops    class      // characters that end the run
	absent   int        // index of the next part if lead is missing; 0 if the part is required
}

func (p *part) isLiteral() bool { return p.literal != "" }

// class is a set of the characters that delimit something.
type class uint8

const (
	slash class = 1 << iota
	question
	hash
	comma
	dot
	control
)

const segment = slash | question | hash | control

var classes = func() (table [256]class) {
	for c := range 0x20 {
		table[c] = control
	}
	table[0x7F] = control
	table['/'], table['?'], table['#'] = slash, question, hash
	table[','], table['.'] = comma, dot
	return table
}()

func (t *Template) compileParts() {
	for i, piece := range t.pieces {
		e := piece.expression
		switch {
		case e == nil:
			t.parts = append(t.parts, part{literal: piece.literal})
		case operatorRules[e.operator].named:
			t.compileNamed(e)
		default:
			t.compileRuns(e, t.delimitersAfter(i+1))
		}
	}
	slot := 0
	for i := range t.parts {
		if !t.parts[i].isLiteral() {
			t.parts[i].slot = slot
			slot++
		}
	}
}

// delimitersAfter returns which of ? and # the template has from a piece on, so that an expression
// of reserved characters before them does not take them.
func (t *Template) delimitersAfter(from int) class {
	var found class
	for _, piece := range t.pieces[from:] {
		if e := piece.expression; e != nil {
			found |= classes[e.operator]
		}
		for i := range len(piece.literal) {
			found |= classes[piece.literal[i]]
		}
	}
	return found & (question | hash)
}

// compileNamed takes {?a}{&b} as one, so that their order does not matter.
func (t *Template) compileNamed(e *expression) {
	if last := len(t.parts) - 1; e.operator == '&' && last >= 0 && t.parts[last].split == '&' && t.parts[last].named != nil {
		t.parts[last].named = append(t.parts[last].named, e.variables...)
		return
	}
	p := part{
		named:  append([]variable(nil), e.variables...),
		lead:   byte(e.operator),
		split:  operatorRules[e.operator].separator,
		stops:  hash | control,
		absent: len(t.parts) + 1,
	}
	if e.operator == ';' {
		p.stops = segment
	}
	t.parts = append(t.parts, p)
}

// compileRuns makes a part of each variable. One that is left out takes those
// after it along: which are there can be told only from the first on.
func (t *Template) compileRuns(e *expression, follows class) {
	how := operatorRules[e.operator]
	stops := segment
	switch {
	case e.operator == '#':
		stops = control
	case how.reserved:
		stops = control | follows
	}
	end := len(t.parts) + len(e.variables)
	for i, v := range e.variables {
		p := part{variable: v, split: how.separator, stops: stops, absent: end}
		switch {
		case i > 0:
			p.lead = how.separator
		case how.first != "":
			p.lead = how.first[0]
		default:
			p.absent = 0
		}
		if v.explode {
			p.stops &^= classes[how.separator]
		} else if len(e.variables) > 1 {
			p.stops |= classes[how.separator]
		}
		if how.reserved || v.explode {
			t.spanning++
		}
		t.parts = append(t.parts, p)
	}
}
