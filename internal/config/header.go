package config

import (
	"fmt"
	"strings"
)

// readHeaders reads an object, or a list of "Name: value".
func (e *entryReader) readHeaders(key string, n *node) {
	if n.kind != arrayNode {
		e.readStringMap("headers", n, &e.s.Headers)
		return
	}
	e.recordPosition("headers", n)
	for i, item := range n.items {
		text, ok := e.readWord(fmt.Sprintf("%s[%d]", key, i), item)
		if !ok {
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			e.errorf(item.at, `write "Name: value"`, "%s[%d] is not a header", key, i)
			continue
		}
		e.addHeader(strings.TrimSpace(name), strings.TrimSpace(value), item)
	}
}

func (e *entryReader) addHeader(name, value string, n *node) {
	setKey(&e.s.Headers, name, value)
	e.recordPosition("headers", n)
	e.recordPosition("headers."+name, n)
}

// readEnvHeaders reads a map from headers to the environment variables that hold their values.
func (e *entryReader) readEnvHeaders(key string, n *node) {
	var names map[string]string
	e.readStringMap(key, n, &names)
	for _, m := range n.members {
		if variable := names[m.key.text]; variable != "" {
			e.addHeader(m.key.text, "${"+variable+"}", m.value)
		}
	}
}

func (e *entryReader) readBearerVariable(key string, n *node) {
	var variable string
	if e.readString(key, n, &variable); variable != "" {
		e.addHeader("Authorization", "Bearer ${"+variable+"}", n)
	}
}

func (e *entryReader) checkHeader(name string) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) {
		e.errorf(e.s.Where("headers."+name), "correct the name", "headers has a field called %q, which is not a valid name", name)
	}
}
