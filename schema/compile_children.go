package schema

import (
	"fmt"
	"slices"
)

// compileSchemas compiles a list of subschemas.
func (k *compiler) compileSchemas(v *tree) ([]*node, error) {
	if v.kind != '[' || len(v.items) == 0 {
		return nil, mustBe("an array of schemas, not empty", v)
	}
	nodes := make([]*node, len(v.items))
	for i, item := range v.items {
		var err error
		if nodes[i], err = k.compileNode(item); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return nodes, nil
}

func (k *compiler) compileArrayKeyword(n *node, m member) (err error) {
	if n.arr == nil {
		n.arr = &arrayRule{minItems: -1, maxItems: -1, minContains: 1, maxContains: -1}
	}
	r := n.arr
	switch m.name {
	case "minItems":
		r.minItems, err = parseLength(m.value)
	case "maxItems":
		r.maxItems, err = parseLength(m.value)
	case "uniqueItems":
		if m.value.kind != 't' && m.value.kind != 'f' {
			return mustBe("a boolean", m.value)
		}
		r.unique = m.value.kind == 't'
	case "items":
		if m.value.kind == '[' && k.dialect < draft2020 {
			r.listed = true
			r.prefix, err = k.compileSchemas(m.value)
			break
		}
		r.hasItems = true
		r.items, err = k.compileNode(m.value)
	case "prefixItems":
		r.prefix, err = k.compileSchemas(m.value)
	case "additionalItems":
		r.beyond, err = k.compileOrBoolean(m.value)
		r.hasBeyond = true
	case "contains":
		r.hasContains, r.takesContained = true, k.dialect >= draft2020
		r.contains, err = k.compileNode(m.value)
	case "minContains", "maxContains":
		err = k.compileContainsKeyword(r, m)
	}
	return err
}

func (k *compiler) compileContainsKeyword(r *arrayRule, m member) error {
	bound, err := parseLength(m.value)
	if m.name == "minContains" {
		r.minContains = bound
	} else {
		r.maxContains = bound
	}
	return err
}

func (k *compiler) compileObjectKeyword(n *node, m member) (err error) {
	if n.obj == nil {
		n.obj = &objectRule{minProperties: -1, maxProperties: -1}
	}
	o, v := n.obj, m.value
	switch m.name {
	case "minProperties":
		o.minProperties, err = parseLength(v)
	case "maxProperties":
		o.maxProperties, err = parseLength(v)
	case "additionalProperties":
		o.hasAdditional = true
		o.additional, err = k.compileOrBoolean(v)
	case "propertyNames":
		o.hasNames = true
		o.names, err = k.compileNode(v)
	case "properties":
		err = k.compileProperties(o, v)
	case "patternProperties":
		err = k.compilePatterns(o, v)
	case "required":
		if err = o.addRequired(v); err == nil && k.dialect == draft4 && o.required == 0 {
			err = mustBe("an array of names, not empty", v)
		}
	case "dependentRequired", "dependentSchemas", "dependencies":
		err = k.compileDependencies(o, m)
	}
	return err
}

func (k *compiler) compileProperties(o *objectRule, v *tree) error {
	if v.kind != '{' {
		return mustBe("an object", v)
	}
	for _, m := range v.members {
		n, err := k.compileNode(m.value)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		f := o.addField(m.name)
		f.node, f.declared = n, true
	}
	return nil
}

// addField is the field of that name, which is added if it is new.
func (o *objectRule) addField(name string) *field {
	i := o.findField([]byte(name))
	if i < 0 {
		i = len(o.fields)
		f := field{name: name, literal: string(appendText(nil, name))}
		if len(f.literal) > len(name)+len(`""`) {
			f.literal = "" // it has escapes, which can be written in several ways
		}
		o.fields = append(o.fields, f)
		if o.byName == nil && len(o.fields) > fewFields {
			o.byName = make(map[string]int)
			for j, f := range o.fields {
				o.byName[f.name] = j
			}
		} else if o.byName != nil {
			o.byName[name] = i
		}
	}
	return &o.fields[i]
}

func (o *objectRule) isPlain() bool {
	undeclared := slices.ContainsFunc(o.fields, func(f field) bool { return !f.declared })
	return o.patterns == nil && !o.hasNames && (!undeclared || o.additional == nil)
}

func (k *compiler) compilePatterns(o *objectRule, v *tree) error {
	if v.kind != '{' {
		return mustBe("an object", v)
	}
	for _, m := range v.members {
		n, err := k.compileNode(m.value)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		re, err := compilePattern(m.name)
		if err != nil {
			return err
		}
		o.patterns = append(o.patterns, patternField{re, n})
	}
	return nil
}

// parseStrings reads an array of distinct strings.
func parseStrings(v *tree) ([]string, error) {
	if v.kind != '[' {
		return nil, mustBe("an array of strings", v)
	}
	seen := make(map[string]bool)
	var names []string
	for _, item := range v.items {
		if item.kind != '"' || seen[item.text] {
			return nil, fmt.Errorf("must be an array of distinct strings (got %s in it)", describeValue(item.raw))
		}
		seen[item.text] = true
		names = append(names, item.text)
	}
	return names, nil
}

func (o *objectRule) addRequired(v *tree) error {
	names, err := parseStrings(v)
	for _, name := range names {
		o.addField(name).required = true
	}
	o.required = len(names)
	return err
}

// compileDependencies adds the rules for objects that have a certain property. The keyword
// dependencies holds lists of names as well as schemas.
func (k *compiler) compileDependencies(o *objectRule, m member) error {
	if m.value.kind != '{' {
		return mustBe("an object", m.value)
	}
	for _, on := range m.value.members {
		d, err := dependency{name: on.name}, error(nil)
		if m.name == "dependentRequired" || m.name == "dependencies" && on.value.kind == '[' {
			d.required, err = parseStrings(on.value)
		} else {
			d.node, err = k.compileNode(on.value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", on.name, err)
		}
		o.dependent = append(o.dependent, d)
	}
	return nil
}

func (k *compiler) compileApplyKeyword(n *node, m member) (err error) {
	if n.apply == nil {
		n.apply = new(applyRule)
	}
	a, v := n.apply, m.value
	switch m.name {
	case "$ref":
		a.ref, err = k.compileRef(v)
	case "$dynamicRef", "$recursiveRef":
		a.dynamic, err = k.dynamicRef(m)
	case "unevaluatedItems", "unevaluatedProperties":
		if a.rest == nil {
			a.rest = new(restRule)
		}
		if m.name == "unevaluatedItems" {
			a.rest.hasItems = true
			a.rest.items, err = k.compileNode(v)
		} else {
			a.rest.hasProperties = true
			a.rest.properties, err = k.compileNode(v)
		}
	case "allOf":
		a.all, err = k.compileSchemas(v)
	case "anyOf":
		a.hasAny = true
		a.any, err = k.compileSchemas(v)
	case "oneOf":
		a.hasOne = true
		a.one, err = k.compileSchemas(v)
	case "not":
		a.hasNot = true
		a.not, err = k.compileNode(v)
	case "if":
		a.hasCond = true
		a.cond, err = k.compileNode(v)
	case "then":
		a.then, err = k.compileNode(v)
	case "else":
		a.other, err = k.compileNode(v)
	}
	return err
}
