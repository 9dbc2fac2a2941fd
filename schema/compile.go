package schema

import (
	"fmt"
)

// compiler turns the subschemas of a document into nodes.
type compiler struct {
	survey  *survey
	dialect dialect              // of the subschema that is being compiled
	nodes   map[*tree]*node      // nil for a schema that accepts everything
	scopes  map[*resource]*scope // nil if the document has no dynamic references between resources
}

// compileAll compiles every subschema, also if no keyword applies it, so that a fault anywhere in
// the document is reported. It returns the node of the root.
func (k *compiler) compileAll() (*node, error) {
	if k.survey.dynamic && len(k.survey.named) > 1 {
		k.scopes = make(map[*resource]*scope)
	}
	for _, t := range k.survey.order {
		if t.kind == 't' || t.kind == 'f' {
			continue // some keywords of draft 4 accept a boolean, others do not
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

// setDirect sets n.direct to the target if n is only a $ref. A $ref to a schema that accepts
// everything stays as it is.
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

// compileOrBoolean compiles a schema that may be a boolean in every dialect.
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

// compileKeyword compiles one keyword into n. It ignores unknown keywords.
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

// isAnchor reports whether name is a valid anchor.
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

// combineKeywords applies the keywords that change the meaning of others. The caller calls it after
// all keywords of n are compiled.
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

// hasMore reports whether there is more than a $ref.
func (a *applyRule) hasMore() bool {
	return a.hasNot || a.hasCond || a.hasAny || a.hasOne || a.all != nil || a.dynamic != nil || a.rest != nil
}
