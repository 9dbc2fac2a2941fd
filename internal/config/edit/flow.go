package edit

import "strings"

// Flow is YAML's word for values in brackets. Here it also means JSON's objects and arrays, and
// TOML's arrays and inline tables.

// flow edits values in brackets.
type flow struct {
	document
	indentUnit    string // the indentation of one level
	trailingComma bool   // lists on several lines have a comma after the last item
	tightCommas   bool   // no space follows a comma
}

// itemWriter formats an item. indent is the indentation of the line on which the item begins. line
// means that the item must not contain line breaks.
type itemWriter func(indent string, line bool) string

// commaAfter returns the position of the comma after pos, or -1.
func (f *flow) commaAfter(pos int) int {
	if pos = f.skipSpace(pos); pos < len(f.text) && f.text[pos] == ',' {
		return pos
	}
	return -1
}

// insertItem adds an item after the last item of n.
func (f *flow) insertItem(n *node, line bool, write itemWriter) []splice {
	if len(n.items) == 0 {
		return f.insertFirstItem(n, line, write)
	}
	last := n.items[len(n.items)-1]
	var splices []splice
	at, comma := f.commaAfter(last.end), ""
	if at < 0 {
		at = last.end
		splices = append(splices, splice{at, at, ","})
	} else {
		at, comma = at+1, ","
	}
	comments, atEnd := f.skipLineComments(at)
	indent := f.indentAt(last.start)
	if !f.isFirstOnLine(last.start) && !(comments > at && atEnd) {
		gap := " "
		if f.tightCommas {
			gap = ""
		}
		return append(splices, splice{comments, comments, gap + write(indent, true) + comma})
	}
	if !f.isFirstOnLine(last.start) {
		indent += f.indentUnit
	}
	return append(splices, splice{comments, comments, f.newline + indent + write(indent, false) + comma})
}

func (f *flow) insertFirstItem(n *node, line bool, write itemWriter) []splice {
	indent := f.indentAt(n.open)
	if line {
		return []splice{{f.innerEnd(n), n.close, write(indent, true)}}
	}
	comma := ""
	if f.trailingComma {
		comma = ","
	}
	inside := indent + f.indentUnit
	return []splice{{f.innerEnd(n), n.close, f.newline + inside + write(inside, false) + comma + f.newline + indent}}
}

// innerEnd returns the end of the comments inside empty brackets.
func (f *flow) innerEnd(n *node) int {
	return n.open + len(strings.TrimRight(string(f.text[n.open:n.close]), " \t\r\n"))
}

// removeItem removes item i of n.
func (f *flow) removeItem(n *node, i int) []splice {
	splices := f.itemRemoval(n, i)
	if len(n.items) > 1 {
		return splices
	}
	// Brackets that are now empty are joined.
	s := splices[0]
	if f.blankOnly(n.open, max(s.start, n.open)) && f.blankOnly(min(s.end, n.close), n.close) {
		return []splice{{n.open, n.close, ""}}
	}
	return splices
}

func (f *flow) itemRemoval(n *node, i int) []splice {
	it, last := n.items[i], i == len(n.items)-1
	end, before := it.end, -1 // before is the comma that would be left over
	if comma := f.commaAfter(it.end); comma >= 0 {
		end = comma + 1
	} else if i > 0 {
		before = f.commaAfter(n.items[i-1].end)
	}
	comments, atEnd := f.skipLineComments(end)
	if f.isFirstOnLine(it.start) && atEnd {
		start := f.commentsStart(lineStart(f.text, it.start), n.open, anyLine)
		splices := []splice{{start, nextLine(f.text, comments), ""}}
		if before >= 0 {
			splices = append(splices, splice{before, before + 1, ""})
		}
		return splices
	}
	if !last {
		return []splice{{it.start, f.skipBlanks(end), ""}}
	}
	if i == 0 {
		return []splice{{it.start, end, ""}}
	}
	if before < 0 { // the trailing comma stays
		before = f.commaAfter(n.items[i-1].end) + 1
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
