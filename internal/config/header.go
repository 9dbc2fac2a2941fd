package config

import (
	"fmt"
	"strings"
)

// headers reads an object, or a list of "Name: value".
func (e *entry) headers(key string, n *node) {
	if n.kind != arrayNode {
		e.stringMap("headers", n, &e.s.Headers)
		return
	}
	e.place("headers", n)
	for i, item := range n.items {
		text, ok := e.word(fmt.Sprintf("%s[%d]", key, i), item)
		if !ok {
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			e.errorf(item.at, `write "Name: value"`, "%s[%d] is no header", key, i)
			continue
		}
		e.header(strings.TrimSpace(name), strings.TrimSpace(value), item)
	}
}

func (e *entry) header(name, value string, n *node) {
	put(&e.s.Headers, name, value)
	e.place("headers", n)
	e.place("headers."+name, n)
}

// envHeaders maps headers to the environment variables that hold their values.
func (e *entry) envHeaders(key string, n *node) {
	var names map[string]string
	e.stringMap(key, n, &names)
	for _, m := range n.members {
		if variable := names[m.key.text]; variable != "" {
			e.header(m.key.text, "${"+variable+"}", m.value)
		}
	}
}

func (e *entry) bearer(key string, n *node) {
	var variable string
	if e.string(key, n, &variable); variable != "" {
		e.header("Authorization", "Bearer ${"+variable+"}", n)
	}
}

func (e *entry) checkHeader(name string) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) {
		e.errorf(e.s.Where("headers."+name), "correct the name", "headers has a field called %q, which no header can be", name)
	}
}
