package uritemplate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// readValues reads the variables from where the parts are.
func (t *Template) readValues(uri string, spans *[MaxVariables]span) (Values, bool) {
	vars := make(Values, len(t.names))
	for i := range t.parts {
		p := &t.parts[i]
		if p.isLiteral() || spans[p.slot].end == 0 {
			continue
		}
		run, ok := uri[spans[p.slot].start:spans[p.slot].end], false
		if p.named != nil {
			ok = p.readParameters(vars, run)
		} else {
			ok = p.readRun(vars, run)
		}
		if !ok {
			return nil, false
		}
	}
	return vars, true
}

func (p *part) readRun(vars Values, run string) bool {
	if !p.variable.explode {
		text, ok := percentDecode(run)
		return ok && p.variable.assignText(vars, text)
	}
	items := make([]string, 0, strings.Count(run, string(p.split))+1)
	for item := range strings.SplitSeq(run, string(p.split)) {
		text, ok := percentDecode(item)
		if !ok {
			return false
		}
		items = append(items, text)
	}
	old, again := vars[p.variable.name]
	vars[p.variable.name] = Value{kind: isList, items: items}
	return !again || old.kind == isList && slices.Equal(old.items, items)
}

// assignText sets a variable to a text, or compares the text with its value. A text as long as the
// variable's prefix may be only the beginning of the value.
func (v variable) assignText(vars Values, text string) bool {
	length := 0
	if v.prefix > 0 {
		if length = utf8.RuneCountInString(text); length > v.prefix {
			return false
		}
	}
	old, again := vars[v.name]
	switch {
	case !again, old.partial && strings.HasPrefix(text, old.text):
		vars[v.name] = Value{kind: isText, text: text, partial: v.prefix > 0 && length == v.prefix}
		return true
	case old.kind != isText:
		return false
	}
	return text == v.cutPrefix(old.text)
}

// readParameters reads named variables in any order.
func (p *part) readParameters(vars Values, run string) bool {
	var others []string // names and values
	var buffer [8]string
	seen := buffer[:0] // names that must not come again
	for parameter := range strings.SplitSeq(run, string(p.split)) {
		name, value, _ := strings.Cut(parameter, "=")
		text, ok := percentDecode(value)
		if !ok || name == "" {
			return false
		}
		i := slices.IndexFunc(p.named, func(v variable) bool { return v.name == name })
		switch {
		case i < 0:
			if name, ok = percentDecode(name); !ok {
				return false
			}
			others = append(others, name, text)
		case p.named[i].explode:
			vars[name] = Value{kind: isList, items: append(vars[name].items, text)}
		case slices.Contains(seen, name) || !p.named[i].assignText(vars, text):
			return false
		default:
			seen = append(seen, name)
		}
	}
	return others == nil || p.readOthers(vars, others)
}

// readOthers assigns the parameters that the template does not name to the first exploded variable
// without items.
func (p *part) readOthers(vars Values, others []string) bool {
	for _, v := range p.named {
		if v.explode && !vars[v.name].Defined() {
			vars[v.name] = Value{kind: isPairs, items: others}
			return true
		}
	}
	return false
}

// percentDecode undoes percent-encoding; it fails on a % that two hex digits do not follow.
func percentDecode(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if !isTriplet(s[i:]) {
			return "", false
		}
		b = append(b, byte(hexDigit(s[i+1])<<4|hexDigit(s[i+2])))
		i += 2
	}
	return string(b), true
}

// SafePath reports why a matched value must not be joined to a directory as a
// path below it: it is empty, absolute (on Unix or Windows), holds a NUL, or
// has a segment "..". Slashes and backslashes both separate segments, whatever
// the system. It does not look at the file system: a symbolic link can still
// lead out, which os.Root prevents.
func SafePath(value string) error {
	switch {
	case value == "":
		return errors.New("uritemplate: empty path")
	case strings.IndexByte(value, 0) >= 0:
		return fmt.Errorf("uritemplate: path %q holds a NUL", value)
	case value[0] == '/', value[0] == '\\', len(value) > 1 && value[1] == ':' && isAlphanumeric(value[0]):
		return fmt.Errorf("uritemplate: path %q is absolute", value)
	}
	separator := func(r rune) bool { return r == '/' || r == '\\' }
	for segment := range strings.FieldsFuncSeq(value, separator) {
		if segment == ".." {
			return fmt.Errorf("uritemplate: path %q leads upwards", value)
		}
	}
	return nil
}
