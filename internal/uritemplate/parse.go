package uritemplate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse reads a template. Its error is a *[ParseError].
func Parse(text string) (*Template, error) {
	p := &parser{t: &Template{text: text}}
	if len(text) > MaxTemplate {
		return nil, p.newError(MaxTemplate, "template is longer than %d bytes", MaxTemplate)
	}
	for p.at < len(text) {
		step := p.parseLiteral
		if text[p.at] == '{' {
			step = p.parseExpression
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.t.compileParts()
	return p.t, nil
}

type parser struct {
	t     *Template
	at    int
	count int // variables
}

func (p *parser) newError(at int, problem string, args ...any) error {
	return &ParseError{Template: p.t.text, Offset: at, Problem: fmt.Sprintf(problem, args...)}
}

// parseLiteral reads up to the next brace. It percent-encodes the characters that a template may
// hold and a URI may not (ucschar and iprivate).
func (p *parser) parseLiteral() error {
	var b strings.Builder
	text := p.t.text
	for p.at < len(text) && text[p.at] != '{' {
		r, size := utf8.DecodeRuneInString(text[p.at:])
		switch {
		case r == '%':
			if !isTriplet(text[p.at:]) {
				return p.newError(p.at, "%% that two hex digits do not follow")
			}
			size = 3
			b.WriteString(text[p.at : p.at+size])
		case r == utf8.RuneError && size == 1:
			return p.newError(p.at, "invalid UTF-8")
		case r >= 0xA0:
			percentEncode(&b, text[p.at:p.at+size], false)
		case r == '}':
			return p.newError(p.at, "closing brace without an opening one")
		case r <= ' ' || r >= 0x7F || strings.ContainsRune("\"<>\\^`|", r):
			return p.newError(p.at, "%q cannot stand in a URI; percent-encode it", r)
		default:
			b.WriteByte(text[p.at])
		}
		p.at += size
	}
	p.t.pieces = append(p.t.pieces, piece{literal: b.String()})
	p.t.literals += b.Len()
	return nil
}

func (p *parser) parseExpression() error {
	opening := p.at
	length := strings.IndexByte(p.t.text[opening:], '}')
	if length < 0 {
		return p.newError(opening, "brace that is not closed")
	}
	closing := opening + length
	p.at++
	e := &expression{}
	if p.at < closing {
		if c := p.t.text[p.at]; strings.IndexByte("+#./;?&", c) >= 0 {
			e.operator = operator(c)
			p.at++
		} else if strings.IndexByte("=,!@|", c) >= 0 {
			return p.newError(p.at, "operator %q is reserved by RFC 6570", c)
		}
	}
	for {
		v, err := p.parseVariable(closing)
		if err != nil {
			return err
		}
		e.variables = append(e.variables, v)
		p.at++ // past the comma or the closing brace
		if p.at > closing {
			break
		}
	}
	p.t.pieces = append(p.t.pieces, piece{expression: e})
	return nil
}

// parseVariable reads one variable and stops at the comma or brace after it.
func (p *parser) parseVariable(closing int) (variable, error) {
	if p.count++; p.count > MaxVariables {
		return variable{}, p.newError(p.at, "more than %d variables", MaxVariables)
	}
	name, err := p.parseName(closing)
	if err != nil {
		return variable{}, err
	}
	v := variable{name: name}
	switch p.t.text[p.at] {
	case '*':
		v.explode = true
		p.at++
	case ':':
		if v.prefix, err = p.parsePrefix(); err != nil {
			return variable{}, err
		}
	}
	if c := p.t.text[p.at]; c != ',' && c != '}' {
		return variable{}, p.newError(p.at, "%q after a variable", c)
	}
	if !slices.Contains(p.t.names, name) {
		p.t.names = append(p.t.names, name)
	}
	return v, nil
}

// parseName reads letters, digits, underscores and triplets, with single dots in between.
func (p *parser) parseName(closing int) (string, error) {
	text, start := p.t.text, p.at
	dot := true // whether a dot must not come next
	for p.at < closing {
		c := text[p.at]
		switch {
		case c == '.' && !dot:
			dot = true
			p.at++
			continue
		case c == '%' && isTriplet(text[p.at:closing]):
			p.at += 3
		case c == '_' || isAlphanumeric(c):
			p.at++
		default:
			closing = p.at
			continue
		}
		dot = false
	}
	switch {
	case p.at == start:
		return "", p.newError(p.at, "no variable's name")
	case dot:
		return "", p.newError(p.at-1, "variable's name ends with a dot")
	}
	return text[start:p.at], nil
}

// parsePrefix reads a colon and a number from 1 to 9999. The closing brace ends the number.
func (p *parser) parsePrefix() (int, error) {
	colon, n := p.at, 0
	for p.at++; p.t.text[p.at] >= '0' && p.t.text[p.at] <= '9' && n < 1000; p.at++ {
		n = n*10 + int(p.t.text[p.at]-'0')
		if n == 0 {
			break
		}
	}
	if n == 0 {
		return 0, p.newError(colon, "prefix that is not a number from 1 to 9999")
	}
	return n, nil
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func isTriplet(s string) bool {
	return len(s) >= 3 && s[0] == '%' && hexDigit(s[1]) >= 0 && hexDigit(s[2]) >= 0
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
