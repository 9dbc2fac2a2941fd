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
	survey  *survey
	dialect dialect // of the subschema that is being compiled
	nodes   map[*tree]*node
	scopes  map[*resource]*scope // where the way to a reference counts
}

// compileAll compiles every subschema, including those that no keyword applies, so that a faulty
// document is refused wherever the fault is.
func (k *compiler) compileAll() (*node, error) {
	if k.survey.dynamic && len(k.survey.named) > 1 {
		k.scopes = make(map[*resource]*scope)
	}
	for _, t := range k.survey.order {
		if t.kind == 't' || t.kind == 'f' {
			continue // whether it may be one depends on the keyword
		}
		if _, err := k.compileNode(t); err != nil {
			return nil, err
		}
	}
	root, err := k.compileNode(k.survey.root)
	if err != nil {
		return nil, err
	}
	k.fillScopes()
	if err := checkChains(k.nodes); err != nil {
		return nil, err
	}
	for _, n := range k.nodes {
		n.setDirect()
		if n != nil && n.obj != nil {
			n.obj.plain = n.obj.isPlain()
		}
	}
	return root, nil
}

// setDirect sets direct. A $ref to a schema that accepts everything stays a reference.
func (n *node) setDirect() {
	if n == nil || n.apply == nil || n.apply.ref == nil || n.scope != nil {
		return
	}
	if only := (node{apply: n.apply}); *n == only && !n.apply.hasMore() {
		n.direct = n.apply.ref
	}
}

var neverNode = &node{never: true}

func (k *compiler) compileNode(t *tree) (*node, error) {
	home := k.survey.homes[t]
	switch {
	case t.kind == '{':
	case home != nil && home.dialect == draft4:
		return nil, fmt.Errorf("a schema must be an object (got %s)", describeValue(t.raw))
	case t.kind == 't' || t.kind == 'f':
		return k.compileOrBoolean(t)
	default:
		return nil, fmt.Errorf("a schema must be an object or a boolean (got %s)", describeValue(t.raw))
	}
	if n, ok := k.nodes[t]; ok {
		return n, nil
	}
	defer func(outer dialect) { k.dialect = outer }(k.dialect)
	k.dialect = home.dialect
	n := &node{scope: k.scopeOf(home)}
	k.nodes[t] = n
	if ref := t.getMember("$ref"); ref != nil && k.dialect.refAlone() {
		return n, k.compileRefOnly(n, ref)
	}
	for _, m := range t.members {
		keyword := k.compileKeyword
		if !k.dialect.knowsKeyword(m.name) {
			keyword = k.checkFormerKeyword
		}
		if err := keyword(n, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if *n == (node{}) {
		k.nodes[t] = nil
		return nil, nil
	}
	return n, n.combineKeywords()
}

// compileOrBoolean is the node of a schema that may be a boolean in every dialect.
func (k *compiler) compileOrBoolean(t *tree) (*node, error) {
	switch t.kind {
	case 't':
		return nil, nil
	case 'f':
		return neverNode, nil
	}
	return k.compileNode(t)
}

func (k *compiler) compileRefOnly(n *node, ref *tree) (err error) {
	n.apply = new(applyRule)
	n.apply.ref, err = k.compileRef(ref)
	return err
}

func (k *compiler) compileRef(ref *tree) (*node, error) {
	if ref.kind != '"' {
		return nil, mustBe("a string", ref)
	}
	return k.compileNode(k.survey.targets[ref])
}

func mustBe(what string, got *tree) error {
	return fmt.Errorf("must be %s (got %s)", what, describeValue(got.raw))
}

// compileKeyword compiles one keyword into n. Keywords that
// are not known count for nothing.
func (k *compiler) compileKeyword(n *node, m member) (err error) {
	v := m.value
	switch m.name {
	case "type":
		n.types, err = typeKinds(v)
	case "enum":
		err = n.addEnum(v.items, v.kind == '[', v)
	case "const":
		err = n.addEnum([]*tree{v}, true, v)
	case "minLength", "maxLength", "pattern":
		err = n.compileStringKeyword(m)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		err = k.compileNumberKeyword(n, m)
	case "items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems":
		err = k.compileArrayKeyword(n, m)
	case "properties", "required", "patternProperties", "additionalProperties", "propertyNames",
		"minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies":
		err = k.compileObjectKeyword(n, m)
	case "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
		"unevaluatedItems", "unevaluatedProperties":
		err = k.compileApplyKeyword(n, m)
	case "$defs", "definitions":
		err = k.compileDefinitions(v)
	case "$anchor", "$dynamicAnchor":
		if v.kind != '"' || !isAnchor(v.text) {
			err = mustBe("a name of letters, digits, -, _ and .", v)
		}
	case "$schema", "$id", "id", "$comment", "title", "description", "format", "contentEncoding", "contentMediaType":
		if v.kind != '"' {
			err = mustBe("a string", v)
		}
	case "readOnly", "writeOnly", "deprecated", "$recursiveAnchor":
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

func (k *compiler) compileDefinitions(v *tree) error {
	if v.kind != '{' {
		return mustBe("an object", v)
	}
	for _, m := range v.members {
		if _, err := k.compileNode(m.value); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// checkFormerKeyword checks the form of a keyword that the dialect has dropped. The keyword has no
// effect.
func (k *compiler) checkFormerKeyword(_ *node, m member) error {
	switch {
	case k.dialect == draft2020 && (m.name == "$recursiveAnchor" || m.name == "$recursiveRef") && m.value.kind != '"':
		return mustBe("a string", m.value)
	case k.dialect >= draft2019 && m.name == "dependencies":
		return k.compileDependencies(new(objectRule), m)
	}
	return nil
}

// isAnchor reports whether name may be one.
func isAnchor(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_':
		case i > 0 && (b >= '0' && b <= '9' || b == '-' || b == '.'):
		default:
			return false
		}
	}
	return name != ""
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

// addEnum adds an enumeration. Where there is one already (enum beside const),
// the values in both remain.
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

// combineKeywords ends a node, once all of its keywords are known.
func (n *node) combineKeywords() error {
	if r := n.arr; r != nil && r.listed && r.hasBeyond {
		r.items, r.hasItems = r.beyond, true
	}
	r := n.num
	if r == nil {
		return nil
	}
	if r.notMinimum {
		if r.minimum == nil {
			return fmt.Errorf("exclusiveMinimum needs a minimum")
		}
		r.above, r.minimum = r.minimum, nil
	}
	if r.notMaximum {
		if r.maximum == nil {
			return fmt.Errorf("exclusiveMaximum needs a maximum")
		}
		r.below, r.maximum = r.maximum, nil
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

// checkChains refuses documents in which a subschema applies itself to the same
// value, or too many subschemas apply each other.
func checkChains(nodes map[*tree]*node) error {
	heights := make(map[*node]int) // math.MaxInt while on the way
	for _, n := range nodes {
		if err := checkChain(n, heights); err != nil {
			return err
		}
	}
	return nil
}

func checkChain(n *node, heights map[*node]int) error {
	if n == nil || n.apply == nil && (n.obj == nil || n.obj.dependent == nil) {
		return nil
	}
	switch h, ok := heights[n]; {
	case h == math.MaxInt:
		return fmt.Errorf("%w: a subschema refers to itself without going into the value", ErrUnsupported)
	case ok:
		return nil
	}
	heights[n] = math.MaxInt
	height := 0
	for _, sub := range n.inPlace() {
		if err := checkChain(sub, heights); err != nil {
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

// hasMore reports whether there is more than a $ref.
func (a *applyRule) hasMore() bool {
	return a.hasNot || a.hasCond || a.hasAny || a.hasOne || a.all != nil || a.dynamic != nil || a.rest != nil
}

// inPlace returns the subschemas that apply to the same value, except the targets of dynamic
// references, which depend on the path of a validation.
func (n *node) inPlace() (all []*node) {
	if a := n.apply; a != nil {
		fixed := []*node{a.ref, a.not, a.cond, a.then, a.other}
		all = slices.Concat(fixed, a.all, a.any, a.one)
	}
	if n.obj != nil {
		for _, d := range n.obj.dependent {
			all = append(all, d.node)
		}
	}
	return all
}
