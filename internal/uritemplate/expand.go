package uritemplate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Expand returns the URI of the template for these variables. An undefined variable adds nothing to
// the URI. Expand fails if the template takes a prefix ({x:3}) of a variable that is not a string.
func (t *Template) Expand(vars Values) (string, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.expression == nil {
			b.WriteString(p.literal)
		} else if err := p.expression.writeTo(&b, vars); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func (e *expression) writeTo(b *strings.Builder, vars Values) error {
	how := operatorRules[e.operator]
	before := how.first
	for _, v := range e.variables {
		value := vars[v.name]
		if v.prefix > 0 && value.kind > isText {
			return fmt.Errorf("uritemplate: variable %q must be a string, because the template takes its first %d characters", v.name, v.prefix)
		}
		if !value.Defined() {
			continue
		}
		b.WriteString(before)
		before = string(how.separator)
		if v.explode && value.kind > isText {
			v.expandExploded(b, how, value)
		} else {
			v.expandWhole(b, how, value)
		}
	}
	return nil
}

// expandWhole writes a value without the explode modifier (*): items are separated by commas, and
// the name of the variable appears once.
func (v variable) expandWhole(b *strings.Builder, how operatorRule, value Value) {
	items := value.items
	if value.kind == isText {
		items = []string{v.cutPrefix(value.text)}
	}
	if how.named {
		b.WriteString(v.name)
		if len(items) == 1 && items[0] == "" {
			b.WriteString(how.ifEmpty)
			return
		}
		b.WriteByte('=')
	}
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		percentEncode(b, item, how.reserved)
	}
}

func (v variable) cutPrefix(text string) string {
	if v.prefix == 0 {
		return text
	}
	end := 0
	for n := 0; n < v.prefix && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end]
}

// expandExploded writes a value with the explode modifier (*): each item, or each key with its
// value, like a separate variable.
func (v variable) expandExploded(b *strings.Builder, how operatorRule, value Value) {
	width := 1
	if value.kind == isPairs {
		width = 2
	}
	first := true
	for entry := range slices.Chunk(value.items, width) {
		if !first {
			b.WriteByte(how.separator)
		}
		first = false
		item := entry[width-1]
		switch {
		case value.kind == isPairs:
			percentEncode(b, entry[0], how.reserved)
		case how.named:
			b.WriteString(v.name)
		}
		switch {
		case how.named && item == "":
			b.WriteString(how.ifEmpty)
			continue
		case how.named, value.kind == isPairs:
			b.WriteByte('=')
		}
		percentEncode(b, item, how.reserved)
	}
}

// percentEncode writes unreserved characters unchanged and percent-encodes the others. If reserved
// is true, reserved characters and existing triplets stay unchanged too.
func percentEncode(b *strings.Builder, s string, reserved bool) {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case isUnreserved(c), reserved && isReserved(c), reserved && isTriplet(s[i:]):
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}

func isUnreserved(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

func isReserved(c byte) bool { return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 }
