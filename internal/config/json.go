package config

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/tailscale/hujson"
)

// json reads JSON with comments and trailing commas.
func (d *document) json() *node {
	if len(bytes.TrimSpace(d.text)) == 0 {
		return d.node(objectNode, 0, "")
	}
	if at := tooDeep(d.text); at >= 0 {
		d.failf(at, "lists and objects are nested more than %d deep here", maxDepth)
		return nil
	}
	// The parser wants a line break behind a comment in the last line.
	value, err := hujson.Parse(append(bytes.Clone(d.text), '\n'))
	if err != nil {
		d.jsonError(err)
		return nil
	}
	return d.fromJSON(value)
}

func (d *document) fromJSON(v hujson.Value) *node {
	switch value := v.Value.(type) {
	case *hujson.Object:
		n := d.node(objectNode, v.StartOffset, "")
		for _, m := range value.Members {
			d.put(n, d.fromJSON(m.Name), d.fromJSON(m.Value))
		}
		return n
	case *hujson.Array:
		n := d.node(arrayNode, v.StartOffset, "")
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
		return d.node(stringNode, offset, text)
	case 't', 'f':
		return d.node(boolNode, offset, string(l))
	case 'n':
		return d.node(nullNode, offset, "")
	}
	return d.node(numberNode, offset, string(l))
}

// jsonError says in the words of a person who edits the file what the parser has found.
func (d *document) jsonError(err error) {
	var wrong *edit.SyntaxError
	if !errors.As(edit.ExplainJSON(err), &wrong) {
		return
	}
	offset := len(d.text)
	switch {
	case wrong.Truncated:
		offset = len(bytes.TrimRight(d.text, " \t\r\n"))
	case wrong.Line > 0:
		offset = min(d.offset(wrong.Line, 1)+wrong.Column-1, len(d.text))
	}
	if wrong.Missing {
		offset = d.behindValue(offset)
	}
	d.failf(offset, "%s", wrong.Message)
}

// behindValue moves from where something is wrong back to the end of the value before it, which is where a comma belongs.
func (d *document) behindValue(offset int) int {
	return len(bytes.TrimRight(d.text[:offset], " \t\r\n"))
}

// tooDeep returns where the text is nested deeper than a recursive parser should follow, or -1.
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

func closingQuote(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// commentEnd returns the last byte of the comment that starts at i, or i where none does.
func commentEnd(text []byte, i int) int {
	end, width := -1, 0
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
