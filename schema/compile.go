package schema

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// compiler turns the subschemas of a document into nodes.
type compiler struct {
	root    *tree
	dialect dialect
	nodes   map[*tree]*node
	ready   map[*tree]bool
}

// compileAll compiles every subschema, also those that nothing applies, so that
// a document is refused wherever its fault is.
func (k *compiler) compileAll(subschemas []*tree) (*node, error) {
	for _, t := range subschemas {
		if _, err := k.node(t); err != nil {
			return nil, err
		}
	}
	root, err := k.node(k.root)
	if err != nil {
		return nil, err
	}
	if err := chains(k.nodes); err != nil {
		return nil, err
	}
	for _, n := range k.nodes {
		n.shorten()
		if n != nil && n.obj != nil {
			n.obj.plain = n.obj.isPlain()
		}
	}
	return root, nil
}

// shorten sets direct. A $ref to what accepts everything stays as it is.
func (n *node) shorten() {
	if n == nil || n.apply == nil || n.apply.ref == nil {
		return
	}
	if only := (node{apply: n.apply}); *n == only && !n.apply.more() {
		n.direct = n.apply.ref
	}
}

var neverNode = &node{never: true}

func (k *compiler) node(t *tree) (*node, error) {
	switch t.kind {
	case 't':
		return nil, nil
	case 'f':
		return neverNode, nil
	case '{':
	default:
		return nil, fmt.Errorf("a schema must be an object or a boolean (got %s)", shown(t.raw))
	}
	if n, ok := k.nodes[t]; ok {
		return n, nil
	}
	n := new(node)
	k.nodes[t] = n
	if ref := t.get("$ref"); ref != nil && k.dialect < draft2019 {
		return n, k.refOnly(n, ref) // siblings do not count
	}
	for _, m := range t.members {
		if err := k.keyword(n, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if *n == (node{}) {
		k.nodes[t] = nil
		return nil, nil
	}
	return n, nil
}

func (k *compiler) refOnly(n *node, ref *tree) (err error) {
	n.apply = new(applyRule)
	n.apply.ref, err = k.ref(ref)
	return err
}

func (k *compiler) ref(ref *tree) (*node, error) {
	if ref.kind != '"' {
		return nil, mustBe("a string", ref)
	}
	target, err := k.root.resolve(ref.text)
	if err != nil {
		return nil, err
	}
	return k.node(target)
}

func mustBe(what string, got *tree) error {
	return fmt.Errorf("must be %s (got %s)", what, shown(got.raw))
}

// keyword compiles one keyword into n. Keywords that
// are not known count for nothing.
func (k *compiler) keyword(n *node, m member) (err error) {
	v := m.value
	switch m.name {
	case "type":
		n.types, err = typeKinds(v)
	case "enum":
		err = n.restrict(v.items, v.kind == '[', v)
	case "const":
		err = n.restrict([]*tree{v}, true, v)
	case "minLength", "maxLength", "pattern":
		err = n.stringKeyword(m)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		err = n.numberKeyword(m)
	case "items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems":
		err = k.arrayKeyword(n, m)
	case "properties", "required", "patternProperties", "additionalProperties", "propertyNames",
		"minProperties", "maxProperties", "dependentRequired":
		err = k.objectKeyword(n, m)
	case "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		err = k.applyKeyword(n, m)
	case "$defs", "definitions":
		if v.kind != '{' {
			err = mustBe("an object", v)
		}
	case "$schema", "$id", "$comment", "title", "description", "format", "contentEncoding", "contentMediaType":
		if v.kind != '"' {
			err = mustBe("a string", v)
		}
	case "readOnly", "writeOnly", "deprecated":
		if v.kind != 't' && v.kind != 'f' {
			err = mustBe("a boolean", v)
		}
	case "examples":
		if v.kind != '[' {
			err = mustBe("an array", v)
		}
	}
	return err
}

func typeKinds(v *tree) (kinds, error) {
	names := []*tree{v}
	if v.kind == '[' {
		names = v.items
	}
	var set kinds
	for _, name := range names {
		i := slices.Index(kindNames[:], name.text)
		if i < 0 {
			return 0, fmt.Errorf("must be one of %s (got %s)", list(kindNames[:], "or"), shown(name.raw))
		}
		if set&(1<<i) != 0 {
			return 0, fmt.Errorf("names %s twice", quoted([]byte(name.text)))
		}
		set |= 1 << i
	}
	if set == 0 {
		return 0, fmt.Errorf("must name a type")
	}
	return set, nil
}

// restrict adds an enumeration. Where there is one already (enum beside const),
// the values in both remain.
func (n *node) restrict(values []*tree, ok bool, v *tree) error {
	if !ok {
		return mustBe("an array", v)
	}
	e := new(enumRule)
	for _, value := range values {
		if n.enum == nil || n.enum.has(value) {
			e.add(value)
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

func (e *enumRule) add(v *tree) {
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
		e.hashes = append(e.hashes, v.hash())
	}
}

func (e *enumRule) has(v *tree) bool {
	return slices.ContainsFunc(e.values, func(o *tree) bool { return o.hash() == v.hash() })
}

func (t *tree) hash() uint64 {
	s := scan{data: t.raw, trusted: 1}
	defer s.release()
	_, hash := s.hash(0)
	return hash
}

func length(v *tree) (int, error) {
	if v.kind == '0' {
		if n, ok := newNumber(v.raw).length(); ok {
			return n, nil
		}
	}
	return 0, mustBe("a whole number, not negative", v)
}

func (n *node) stringKeyword(m member) (err error) {
	if n.str == nil {
		n.str = &stringRule{minLength: -1, maxLength: -1}
	}
	switch m.name {
	case "minLength":
		n.str.minLength, err = length(m.value)
	case "maxLength":
		n.str.maxLength, err = length(m.value)
	case "pattern":
		if m.value.kind != '"' {
			return mustBe("a string", m.value)
		}
		n.str.patternText = m.value.text
		n.str.pattern, err = compilePattern(m.value.text)
	}
	return err
}

func (n *node) numberKeyword(m member) error {
	if m.value.kind != '0' {
		return mustBe("a number", m.value)
	}
	if n.num == nil {
		n.num = new(numberRule)
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

// compilePattern compiles an ECMA-262 regular expression as far as Go's syntax
// goes: it has no lookaround and no references to groups.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	const longest = 16 << 10
	if len(pattern) > longest {
		return nil, fmt.Errorf("%w: the pattern is longer than %d bytes", ErrUnsupported, longest)
	}
	re, err := regexp.Compile(translatePattern(pattern))
	if err != nil {
		return nil, fmt.Errorf("%w: Go's regexp cannot run the pattern %s: %v", ErrUnsupported, quoted([]byte(pattern)), err)
	}
	return re, nil
}

// translatePattern writes the escapes that Go has in another form.
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

// chains refuses documents in which a subschema applies itself to the same
// value, or too many subschemas apply each other.
func chains(nodes map[*tree]*node) error {
	heights := make(map[*node]int) // math.MaxInt while on the way
	for _, n := range nodes {
		if err := chain(n, heights); err != nil {
			return err
		}
	}
	return nil
}

func chain(n *node, heights map[*node]int) error {
	if n == nil || n.apply == nil {
		return nil
	}
	switch h, ok := heights[n]; {
	case h == math.MaxInt:
		return fmt.Errorf("a subschema refers to itself without going into the value")
	case ok:
		return nil
	}
	heights[n] = math.MaxInt
	height := 0
	for _, sub := range n.apply.nodes() {
		if err := chain(sub, heights); err != nil {
			return err
		}
		height = max(height, heights[sub])
	}
	if height++; height > maxChain {
		return fmt.Errorf("%w: more than %d subschemas apply each other to one value", ErrUnsupported, maxChain)
	}
	heights[n] = height
	return nil
}

// more reports whether there is more than a $ref.
func (a *applyRule) more() bool { return a.hasNot || a.hasCond || a.hasAny || a.hasOne || a.all != nil }

func (a *applyRule) nodes() []*node {
	fixed := []*node{a.ref, a.not, a.cond, a.then, a.other}
	return slices.Concat(fixed, a.all, a.any, a.one)
}
