package filter

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Item is what a filter decides about: a frame, with its operation if it has one, or an operation
// as a whole.
type Item struct {
	Frame     *journal.Frame
	Operation *journal.Operation
	// Whole: the item is the operation, and Frame is one of its frames. dur and size then belong to
	// the operation.
	Whole bool
}

// Match reports whether the filter accepts an item.
func (f Filter) Match(i Item) bool { return f.root == nil || f.root.match(&i) }

// MatchOperation reports whether the filter accepts an operation with one of its frames.
func (f Filter) MatchOperation(o *journal.Operation, frames []*journal.Frame) bool {
	for _, frame := range frames {
		if f.Match(Item{Frame: frame, Operation: o, Whole: true}) {
			return true
		}
	}
	return len(frames) == 0 && f.Match(Item{Operation: o, Whole: true})
}

type node interface{ match(*Item) bool }

type (
	allOf []node
	anyOf []node
	not   struct{ term node }
	// term reads texts of an item and compares each with the values.
	term struct {
		read   func(*Item) []string
		values []func(string) bool
	}
	// test decides by a function.
	test func(*Item) bool
)

func (n allOf) match(i *Item) bool {
	return !slices.ContainsFunc(n, func(one node) bool { return !one.match(i) })
}

func (n anyOf) match(i *Item) bool {
	return slices.ContainsFunc(n, func(one node) bool { return one.match(i) })
}

func (n not) match(i *Item) bool { return !n.term.match(i) }

func (n test) match(i *Item) bool { return n(i) }

func (n term) match(i *Item) bool {
	return slices.ContainsFunc(n.read(i), func(text string) bool {
		return slices.ContainsFunc(n.values, func(matches func(string) bool) bool { return matches(text) })
	})
}

// newTextTerm searches for a text, without regard to case.
func newTextTerm(text string) node {
	folded := []byte(strings.ToLower(text))
	return test(func(i *Item) bool {
		for _, words := range []func(*Item) []string{readers["method"], readers["name"], readers["client"], readers["server"]} {
			if slices.ContainsFunc(words(i), func(word string) bool { return strings.Contains(strings.ToLower(word), string(folded)) }) {
				return true
			}
		}
		return i.Frame != nil && bytes.Contains(bytes.ToLower(i.Frame.Body), folded)
	})
}

// readers read the texts of simple keys.
var readers = map[string]func(*Item) []string{
	"server": func(i *Item) []string {
		return ofBoth(i, func(f *journal.Frame) string { return f.Server }, func(o *journal.Operation) string { return o.Server })
	},
	"client": func(i *Item) []string {
		return ofBoth(i, func(f *journal.Frame) string { return f.Client }, func(o *journal.Operation) string { return o.Client })
	},
	"method": func(i *Item) []string {
		return ofBoth(i, func(f *journal.Frame) string { return f.Method }, func(o *journal.Operation) string { return o.Method })
	},
	"name": func(i *Item) []string {
		return ofBoth(i, func(f *journal.Frame) string { return f.Name }, func(o *journal.Operation) string { return o.Name })
	},
	"status": func(i *Item) []string {
		return ofBoth(i, func(f *journal.Frame) string { return string(f.Status) }, func(o *journal.Operation) string { return string(o.Status) })
	},
	"kind": func(i *Item) []string { return ofFrame(i, func(f *journal.Frame) string { return f.Kind.String() }) },
	"leg":  func(i *Item) []string { return ofFrame(i, func(f *journal.Frame) string { return f.Leg.String() }) },
	"dir": func(i *Item) []string {
		return ofFrame(i, func(f *journal.Frame) string { return directions[f.Direction] })
	},
	"era":      func(i *Item) []string { return ofFrame(i, func(f *journal.Frame) string { return eraOf(f) }) },
	"revision": func(i *Item) []string { return ofFrame(i, func(f *journal.Frame) string { return string(f.Revision) }) },
	"id": func(i *Item) []string {
		return ofFrame(i, func(f *journal.Frame) string { return strings.Trim(f.ID.String(), `"`) })
	},
	"conn": func(i *Item) []string {
		return ofFrame(i, func(f *journal.Frame) string { return strconv.FormatUint(f.Conn, 10) })
	},
	"op":   func(i *Item) []string { return []string{strconv.FormatUint(operationID(i), 10)} },
	"body": func(i *Item) []string { return ofFrame(i, func(f *journal.Frame) string { return string(f.Body) }) },
}

var directions = [...]string{"out", "in", "in"}

// words are the values that a key may have; other keys may have any.
var words = map[string][]string{
	"kind": {"request", "response", "note", "batch", "stray"}, "leg": {"client", "server"}, "dir": {"in", "out"}, "era": {"modern", "legacy"},
}

// aliases are other words for values of keys, and other keys.
var aliases = map[string]string{"leg:down": "client", "leg:up": "server", "kind:notification": "note", "kind:question": "request", "tool": "name"}

// Keys returns the simple keys, sorted.
func Keys() []string {
	keys := []string{"tool", "dur", "size", "since", "until"}
	for key := range readers {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func ofBoth(i *Item, frame func(*journal.Frame) string, op func(*journal.Operation) string) (texts []string) {
	if i.Frame != nil {
		texts = append(texts, frame(i.Frame))
	}
	if i.Operation != nil {
		texts = append(texts, op(i.Operation))
	}
	return texts
}

func ofFrame(i *Item, frame func(*journal.Frame) string) []string {
	if i.Frame == nil {
		return nil
	}
	return []string{frame(i.Frame)}
}

func operationID(i *Item) uint64 {
	if i.Operation != nil {
		return i.Operation.ID
	}
	return i.Frame.Operation
}

func eraOf(f *journal.Frame) string {
	switch {
	case f.Revision == "":
		return ""
	case f.Revision.Modern():
		return "modern"
	}
	return "legacy"
}

// newTerm returns the term of a key. key is in lower case, written as in the filter.
func newTerm(key, written string, values []value, now time.Time) (node, error) {
	if other, ok := aliases[key]; ok {
		key = other
	}
	switch key {
	case "dur":
		return newComparison(values, func(text string) (float64, error) { return parseSeconds(text) }, secondsOf)
	case "size":
		return newComparison(values, parseSize, sizeOf)
	case "since", "until":
		return newTimeTerm(key, values, now)
	}
	read := readers[key]
	prefix, path, _ := strings.Cut(written, ".")
	switch prefix = strings.ToLower(prefix); {
	case path == "":
	case prefix == "args":
		read = func(i *Item) []string { return readPath(i, path, "params", "arguments") }
	case prefix == "result":
		read = func(i *Item) []string { return readPath(i, path, "result") }
	case prefix == "header":
		read = func(i *Item) []string { return readHeader(i, path) }
	}
	if read == nil {
		return nil, unknownKey(key)
	}
	t := term{read: read}
	allowed := words[key]
	if key == "status" {
		for _, s := range journal.Statuses() {
			allowed = append(allowed, string(s))
		}
	}
	for _, v := range values {
		if other, ok := aliases[key+":"+v.text]; ok {
			v.text = other
		}
		matches, err := newMatcher(v, key == "body")
		if err != nil {
			return nil, err
		}
		if allowed != nil && !slices.ContainsFunc(allowed, matches) {
			return nil, fmt.Errorf("%s:%s: want %s", key, v.text, strings.Join(allowed, ", "))
		}
		t.values = append(t.values, matches)
	}
	return t, nil
}

// newMatcher returns a function that compares a text with a value: as a regular expression, a
// pattern, or a text. part looks for the value anywhere in the text.
func newMatcher(v value, part bool) (func(string) bool, error) {
	if v.regexp {
		compiled, err := regexp.Compile(v.text)
		if err != nil {
			return nil, fmt.Errorf("/%s/ is not a regular expression: %w", v.text, err)
		}
		return compiled.MatchString, nil
	}
	if part {
		return func(text string) bool { return strings.Contains(text, v.text) }, nil
	}
	if v.quoted || !strings.ContainsAny(v.text, "*?") {
		return func(text string) bool { return strings.EqualFold(text, v.text) }, nil
	}
	pattern := regexp.QuoteMeta(v.text)
	pattern = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(pattern)
	compiled, err := regexp.Compile("(?is)^" + pattern + "$")
	if err != nil {
		return nil, fmt.Errorf("%s is not a pattern: %w", v.text, err)
	}
	return compiled.MatchString, nil
}

// readPath returns the values at a path of names, with dots between them, in the body of a frame. A
// name applies to each element of an array.
func readPath(i *Item, path string, first ...string) (texts []string) {
	if i.Frame == nil || rawjson.CheckAll(i.Frame.Body) != nil { // no message, or cut
		return nil
	}
	found := [][]byte{i.Frame.Body}
	for _, name := range append(first, strings.Split(path, ".")...) {
		var next [][]byte
		for _, raw := range found {
			if len(raw) > 0 && raw[0] == '[' {
				for it := rawjson.Array(raw); it.Next(); {
					next = append(next, rawjson.Lookup(it.Value, name))
				}
			} else {
				next = append(next, rawjson.Lookup(raw, name))
			}
		}
		found = slices.DeleteFunc(next, func(raw []byte) bool { return raw == nil })
	}
	for _, raw := range found {
		text, ok := rawjson.String(raw)
		if !ok {
			text = string(raw)
		}
		texts = append(texts, text)
	}
	return texts
}

func readHeader(i *Item, name string) []string {
	if i.Frame == nil {
		return nil
	}
	for field, values := range i.Frame.Header {
		if strings.EqualFold(field, name) {
			return values
		}
	}
	return nil
}
