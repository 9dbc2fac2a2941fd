package edit

import "strings"

// Flow is YAML's word for what stands in brackets; here it is also JSON's objects and arrays, and TOML's arrays and inline tables.

// flow edits what stands in brackets.
type flow struct {
	document
	unit     string // one more level is indented by this
	trailing bool   // lists of lines have a comma behind the last item
	tight    bool   // there is no space behind commas
	oneLine  bool   // everything goes into one line, as in TOML's inline tables
}

// writer writes an item. indent is that of the line it begins on; line is whether all of it must go into one line.
type writer func(indent string, line bool) string

// comma returns the position of the comma behind pos, -1 if there is none.
func (f *flow) comma(pos int) int {
	if pos = f.space(pos); pos < len(f.text) && f.text[pos] == ',' {
		return pos
	}
	return -1
}

// insert puts an item behind the last one of n.
func (f *flow) insert(n *node, line bool, write writer) []splice {
	if len(n.items) == 0 {
		return f.insertFirst(n, line, write)
	}
	last := n.items[len(n.items)-1]
	var splices []splice
	at, comma := f.comma(last.end), ""
	if at < 0 {
		at = last.end
		splices = append(splices, splice{at, at, ","})
	} else {
		at, comma = at+1, ","
	}
	comments, atEnd := f.behind(at)
	indent := f.indent(last.start)
	if !f.first(last.start) && !(comments > at && atEnd) {
		gap := " "
		if f.tight {
			gap = ""
		}
		return append(splices, splice{comments, comments, gap + write(indent, true) + comma})
	}
	if !f.first(last.start) {
		indent += f.unit
	}
	return append(splices, splice{comments, comments, f.newline + indent + write(indent, false) + comma})
}

func (f *flow) insertFirst(n *node, line bool, write writer) []splice {
	indent := f.indent(n.open)
	if line {
		return []splice{{f.inner(n), n.close, write(indent, true)}}
	}
	comma := ""
	if f.trailing {
		comma = ","
	}
	inside := indent + f.unit
	return []splice{{f.inner(n), n.close, f.newline + inside + write(inside, false) + comma + f.newline + indent}}
}

// inner returns the end of what is inside empty brackets: comments.
func (f *flow) inner(n *node) int {
	return n.open + len(strings.TrimRight(string(f.text[n.open:n.close]), " \t\r\n"))
}

// remove takes away an item of n.
func (f *flow) remove(n *node, i int) []splice {
	splices := f.removal(n, i)
	if len(n.items) > 1 {
		return splices
	}
	// Brackets with nothing inside are closed.
	s := splices[0]
	if f.blankOnly(n.open, max(s.start, n.open)) && f.blankOnly(min(s.end, n.close), n.close) {
		return []splice{{n.open, n.close, ""}}
	}
	return splices
}

func (f *flow) removal(n *node, i int) []splice {
	it, last := n.items[i], i == len(n.items)-1
	end, before := it.end, -1 // before: the comma that is one too many
	if comma := f.comma(it.end); comma >= 0 {
		end = comma + 1
	} else if i > 0 {
		before = f.comma(n.items[i-1].end)
	}
	comments, atEnd := f.behind(end)
	if f.first(it.start) && atEnd {
		start := f.attached(lineStart(f.text, it.start), n.open, anyLine)
		splices := []splice{{start, nextLine(f.text, comments), ""}}
		if before >= 0 {
			splices = append(splices, splice{before, before + 1, ""})
		}
		return splices
	}
	if !last {
		return []splice{{it.start, f.blanks(end), ""}}
	}
	if i == 0 {
		return []splice{{it.start, end, ""}}
	}
	if before < 0 { // with a comma at the end, which stays
		before = f.comma(n.items[i-1].end) + 1
	}
	if f.blankOnly(min(before+1, it.start), it.start) {
		if before < it.start {
			return []splice{{before, end, ""}}
		}
		return []splice{{it.start, end, ""}}
	}
	if f.text[before] != ',' {
		return []splice{{it.start, end, ""}}
	}
	return []splice{{before, before + 1, ""}, {it.start, end, ""}}
}

func anyLine(int) bool { return true }
