package config

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/tailscale/hujson"
)

// parseJSON parses JSON with comments and trailing commas.
func (d *document) parseJSON() *node {
	if len(bytes.TrimSpace(d.text)) == 0 {
		return d.newNode(objectNode, 0, "")
	}
	if at := tooDeep(d.text); at >= 0 {
		d.failf(at, "lists and objects are nested more than %d deep here", maxDepth)
		return nil
	}
	// The parser rejects a // comment without a line break.
	value, err := hujson.Parse(append(bytes.Clone(d.text), '\n'))
	if err != nil {
		d.reportSyntaxError(err)
		return nil
	}
	return d.fromJSON(value)
}

func (d *document) fromJSON(v hujson.Value) *node {
	switch value := v.Value.(type) {
	case *hujson.Object:
		n := d.newNode(objectNode, v.StartOffset, "")
		for _, m := range value.Members {
			d.putMember(n, d.fromJSON(m.Name), d.fromJSON(m.Value))
		}
		return n
	case *hujson.Array:
		n := d.newNode(arrayNode, v.StartOffset, "")
		for _, item := range value.Elements {
			n.items = append(n.items, d.fromJSON(item))
		}
		return n
	}
	return d.jsonLiteral(v.StartOffset, v.Value.(hujson.Literal))
}

func (d *document) jsonLiteral(offset int, l hujson.Literal) *node {
	switch l.Kind() {
	case '"':
		var text string
		_ = json.Unmarshal(l, &text) // hujson has validated it
		return d.newNode(stringNode, offset, text)
	case 't', 'f':
		return d.newNode(boolNode, offset, string(l))
	case 'n':
		return d.newNode(nullNode, offset, "")
	}
	return d.newNode(numberNode, offset, string(l))
}

// reportSyntaxError records a parse error at its place, with a message for users.
func (d *document) reportSyntaxError(err error) {
	var wrong *edit.SyntaxError
	if !errors.As(edit.ExplainJSON(err), &wrong) {
		return
	}
	offset := len(d.text)
	switch {
	case wrong.Truncated:
		offset = len(bytes.TrimRight(d.text, " \t\r\n"))
	case wrong.Line > 0:
		offset = min(d.offsetOf(wrong.Line, 1)+wrong.Column-1, len(d.text))
	}
	if wrong.Missing {
		offset = d.endOfPreviousValue(offset)
	}
	d.failf(offset, "%s", wrong.Message)
}

// endOfPreviousValue moves offset back to the end of the value before it, where a missing comma
// belongs.
func (d *document) endOfPreviousValue(offset int) int {
	return len(bytes.TrimRight(d.text[:offset], " \t\r\n"))
}

// tooDeep returns the offset at which text is nested too deep for a recursive parser, or -1.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = closingQuote(text, i)
		case '/':
			i = commentEnd(text, i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// closingQuote returns the offset of the quote that ends the string at i, or an offset beyond text
// if none does.
func closingQuote(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// commentEnd returns the offset of the last byte of the comment that starts at i, i if none starts
// there, or len(text) if the comment has no end.
func commentEnd(text []byte, i int) int {
	var end, width int
	switch rest := text[i:]; {
	case bytes.HasPrefix(rest, []byte("//")):
		end, width = bytes.IndexByte(rest, '\n'), 1
	case bytes.HasPrefix(rest, []byte("/*")):
		if end = bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			end, width = end+2, 2
		}
	default:
		return i
	}
	if end < 0 {
		return len(text)
	}
	return i + end + width - 1
}
