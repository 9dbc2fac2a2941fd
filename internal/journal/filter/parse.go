// Package filter is the filter language of dowel wire and the console:
//
//	server:github -kind:note dur:>500ms
//	(status:error or status:tool-error) tool:create_*|delete_*
//	args.path:/etc body:/secret|token/ "some text"
//
// Terms follow each other and must all hold. A hyphen negates a term, "or" inside parentheses
// separates alternatives, and | separates the values of a key. Values may have * and ?; a value
// between slashes is a regular expression.
package filter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/suggest"
)

// Filter decides about items. The zero Filter accepts all.
type Filter struct{ root node }

// Limits of a filter's text in bytes, and of the depth of its parentheses.
const (
	maxText  = 4096
	maxDepth = 50
)

// SyntaxError is the error of [Parse].
type SyntaxError struct {
	At     int // offset in the filter in bytes
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s (at character %d)", e.Reason, e.At+1) }

// Parse parses a filter. now is the time that since: and until: count from.
func Parse(text string, now time.Time) (Filter, error) {
	if len(text) > maxText {
		return Filter{}, &SyntaxError{maxText, fmt.Sprintf("the filter is longer than %d characters", maxText)}
	}
	p := &parser{text: text, now: now}
	root, err := p.parseAlternatives(0)
	if err == nil && p.at < len(p.text) {
		err = p.fail("this ) has no (")
	}
	return Filter{root}, err
}

type parser struct {
	text string
	at   int
	now  time.Time
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.at, fmt.Sprintf(format, args...)}
}

func (p *parser) skipSpace() {
	for p.at < len(p.text) && strings.ContainsRune(" \t\n", rune(p.text[p.at])) {
		p.at++
	}
}

// takeOr takes the word "or", or returns false.
func (p *parser) takeOr() bool {
	p.skipSpace()
	rest := strings.ToLower(p.text[p.at:min(len(p.text), p.at+3)])
	if rest != "or" && rest != "or " && rest != "or(" {
		return false
	}
	p.at += len("or")
	return true
}

func (p *parser) parseAlternatives(depth int) (node, error) {
	if depth > maxDepth {
		return nil, p.fail("more than %d parentheses are open", maxDepth)
	}
	var all anyOf
	for {
		terms, err := p.parseTerms(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, terms)
		if !p.takeOr() {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	if slices.ContainsFunc(all, func(n node) bool { return len(n.(allOf)) == 0 }) {
		return nil, p.fail("or needs a term on each side")
	}
	return all, nil
}

func (p *parser) parseTerms(depth int) (node, error) {
	var all allOf
	for {
		p.skipSpace()
		if p.at == len(p.text) || p.text[p.at] == ')' {
			return all, nil
		}
		start := p.at
		if p.takeOr() {
			p.at = start
			return all, nil
		}
		term, err := p.parseTerm(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, term)
	}
}

func (p *parser) parseTerm(depth int) (node, error) {
	switch {
	case p.text[p.at] == '-' && p.at+1 < len(p.text) && !strings.ContainsRune(" )", rune(p.text[p.at+1])):
		if depth > maxDepth {
			return nil, p.fail("more than %d terms are nested", maxDepth)
		}
		p.at++
		term, err := p.parseTerm(depth + 1)
		return not{term}, err
	case p.text[p.at] == '(':
		p.at++
		inner, err := p.parseAlternatives(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.at == len(p.text) {
			return nil, p.fail("missing closing )")
		}
		p.at++
		return inner, nil
	case p.text[p.at] == '"':
		text, err := p.takeQuoted()
		return newTextTerm(text), err
	}
	return p.parseWord()
}

// takeQuoted takes a text in double quotes. A backslash quotes the next character.
func (p *parser) takeQuoted() (string, error) {
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '"':
			p.at = i + 1
			return b.String(), nil
		case '\\':
			if i+1 < len(p.text) {
				i++
			}
		}
		b.WriteByte(p.text[i])
	}
	return "", p.fail(`missing closing "`)
}

// parseWord parses key:value, or a word that is searched for.
func (p *parser) parseWord() (node, error) {
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune(" \t\n():\"", rune(p.text[p.at])) {
		p.at++
	}
	key := p.text[start:p.at]
	if p.at == len(p.text) || p.text[p.at] != ':' {
		if key == "" {
			return nil, p.fail("unexpected %q", p.text[p.at])
		}
		return newTextTerm(key), nil
	}
	p.at++
	values, err := p.takeValues()
	if err != nil {
		return nil, err
	}
	term, err := newTerm(strings.ToLower(key), key, values, p.now)
	if err != nil {
		p.at = start
		return nil, p.fail("%v", err)
	}
	return term, nil
}

// value is a value of a key.
type value struct {
	text   string
	quoted bool // * and ? stand for themselves
	regexp bool
}

// takeValues takes the values behind a key: words, quoted texts and regular expressions with |
// between them.
func (p *parser) takeValues() (all []value, err error) {
	for {
		v, err := p.takeValue()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if p.at == len(p.text) || p.text[p.at] != '|' {
			return all, nil
		}
		p.at++
	}
}

func (p *parser) takeValue() (value, error) {
	rest := p.text[p.at:]
	if strings.HasPrefix(rest, `"`) {
		text, err := p.takeQuoted()
		return value{text: text, quoted: true}, err
	}
	if end := closingSlash(rest); end > 0 {
		p.at += end + 1
		return value{text: strings.ReplaceAll(rest[1:end], `\/`, "/"), regexp: true}, nil
	}
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune(" \t\n()|\"", rune(p.text[p.at])) {
		p.at++
	}
	if p.at == start {
		return value{}, p.fail("a value is missing")
	}
	return value{text: p.text[start:p.at]}, nil
}

// closingSlash returns the index of the slash that ends a regular expression, or 0 if the text does
// not start with one. A path such as /etc/passwd is not one: it continues behind its slashes.
func closingSlash(text string) int {
	if len(text) < 2 || text[0] != '/' {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '/' && (i+1 == len(text) || strings.ContainsRune(" \t\n)|", rune(text[i+1]))):
			return i
		}
	}
	return 0
}

// unknownKey returns the error for a key that does not exist.
func unknownKey(key string) error {
	return fmt.Errorf("unknown key %q%s; the keys are %s, args.PATH, result.PATH and header.NAME", key, suggest.Hint(key, Keys()), strings.Join(Keys(), ", "))
}
