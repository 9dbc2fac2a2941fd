package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func typeKinds(v *tree) (kinds, error) {
	names := []*tree{v}
	if v.kind == '[' {
		names = v.items
	}
	var set kinds
	for _, name := range names {
		i := slices.Index(kindNames[:], name.text)
		if i < 0 {
			return 0, fmt.Errorf("must be one of %s (got %s)", joinWords(kindNames[:], "or"), describeValue(name.raw))
		}
		if set&(1<<i) != 0 {
			return 0, fmt.Errorf("names %s twice", quoteText([]byte(name.text)))
		}
		set |= 1 << i
	}
	if set == 0 {
		return 0, fmt.Errorf("must name a type")
	}
	return set, nil
}

// addEnum adds the values of an enum or const. If n has both, it keeps the values that are in both.
func (n *node) addEnum(values []*tree, ok bool, v *tree) error {
	if !ok {
		return mustBe("an array", v)
	}
	e := new(enumRule)
	for _, value := range values {
		if n.enum == nil || n.enum.hasValue(value) {
			e.addValue(value)
		}
	}
	if len(e.strings) > fewNames {
		e.byString = make(map[string]struct{}, len(e.strings))
		for _, s := range e.strings {
			e.byString[string(s)] = struct{}{}
		}
	}
	n.enum = e
	return nil
}

func (e *enumRule) addValue(v *tree) {
	e.values = append(e.values, v)
	switch v.kind {
	case '"':
		e.strings = append(e.strings, []byte(v.text))
	case '0':
		e.numbers = append(e.numbers, newNumber(v.raw))
	case 'n':
		e.literals |= isNull
	case 't':
		e.yes = true
	case 'f':
		e.no = true
	default:
		e.hashes = append(e.hashes, v.hashTree())
	}
}

func (e *enumRule) hasValue(v *tree) bool {
	return slices.ContainsFunc(e.values, func(o *tree) bool { return o.hashTree() == v.hashTree() })
}

func (t *tree) hashTree() uint64 {
	s := scan{data: t.raw, trusted: 1}
	defer s.releaseNames()
	_, hash := s.hashValue(0)
	return hash
}

func parseLength(v *tree) (int, error) {
	if v.kind == '0' {
		if n, ok := newNumber(v.raw).asLength(); ok {
			return n, nil
		}
	}
	return 0, mustBe("a whole number, not negative", v)
}

func (n *node) compileStringKeyword(m member) (err error) {
	if n.str == nil {
		n.str = &stringRule{minLength: -1, maxLength: -1}
	}
	switch m.name {
	case "minLength":
		n.str.minLength, err = parseLength(m.value)
	case "maxLength":
		n.str.maxLength, err = parseLength(m.value)
	case "pattern":
		if m.value.kind != '"' {
			return mustBe("a string", m.value)
		}
		n.str.patternText = m.value.text
		n.str.pattern, err = compilePattern(m.value.text)
	}
	return err
}

func (k *compiler) compileNumberKeyword(n *node, m member) error {
	if n.num == nil {
		n.num = new(numberRule)
	}
	if k.dialect == draft4 && strings.HasPrefix(m.name, "exclusive") {
		return n.num.setExclusive(m)
	}
	if m.value.kind != '0' {
		return mustBe("a number", m.value)
	}
	value := newNumber(m.value.raw)
	switch m.name {
	case "minimum":
		n.num.minimum = value
	case "maximum":
		n.num.maximum = value
	case "exclusiveMinimum":
		n.num.above = value
	case "exclusiveMaximum":
		n.num.below = value
	case "multipleOf":
		if value.decimal.sign() <= 0 {
			return mustBe("above 0", m.value)
		}
		if p := value.decimal.point; len(value.text) > maxExponent || p > maxExponent || p < -maxExponent {
			return fmt.Errorf("%w: has too many digits", ErrUnsupported)
		}
		n.num.multipleOf = value
	}
	return nil
}

// setExclusive sets exclusiveMinimum or exclusiveMaximum of draft 4, booleans that change the
// meaning of minimum and maximum.
func (r *numberRule) setExclusive(m member) error {
	if m.value.kind != 't' && m.value.kind != 'f' {
		return mustBe("a boolean", m.value)
	}
	if m.name == "exclusiveMinimum" {
		r.notMinimum = m.value.kind == 't'
	} else {
		r.notMaximum = m.value.kind == 't'
	}
	return nil
}

// compilePattern compiles an ECMA-262 regular expression as far as Go's syntax allows: Go lacks
// lookaround and references to groups.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	const longest = 16 << 10
	if len(pattern) > longest {
		return nil, fmt.Errorf("%w: the pattern is longer than %d bytes", ErrUnsupported, longest)
	}
	re, err := regexp.Compile(translatePattern(pattern))
	if err != nil {
		return nil, fmt.Errorf("%w: Go's regexp cannot run the pattern %s: %v", ErrUnsupported, quoteText([]byte(pattern)), err)
	}
	return re, nil
}

// translatePattern rewrites the escapes \u{…}, \uXXXX and \cX, which Go spells differently.
func translatePattern(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		i++
		switch rest := pattern[i+1:]; {
		case pattern[i] == 'u' && strings.HasPrefix(rest, "{"):
			b.WriteString(`\x`)
		case pattern[i] == 'u' && len(rest) >= 4:
			b.WriteString(`\x{` + rest[:4] + `}`)
			i += 4
		case pattern[i] == 'c' && rest != "":
			b.WriteString(`\x{` + strconv.FormatUint(uint64(rest[0]%32), 16) + `}`)
			i++
		default:
			b.WriteByte('\\')
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}
