package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/near"
)

// maxShown bounds how much of a value a message repeats.
const maxShown = 48

// describeValue is a value as messages show it.
func describeValue(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "the string " + clipText(string(raw))
	case 't', 'f', 'n':
		return string(raw)
	}
	return clipText(string(raw))
}

// quoteText is a text as messages show it.
func quoteText(text []byte) string { return clipText(fmt.Sprintf("%q", text)) }

func clipText(s string) string {
	if len(s) <= maxShown {
		return s
	}
	n := maxShown
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// countNoun is "1 character", "2 characters".
func countNoun(n int, noun string) string { return plural(n, noun, noun+"s") }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// joinWords is `"a", "b" and "c"`.
func joinWords(words []string, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" " + last + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(quoteText([]byte(w)))
	}
	return b.String()
}

// listTypes returns "a string", or "a string or null".
func (k kinds) listTypes() string {
	var words []string
	for i, name := range kindNames {
		switch bit := kinds(1) << i; {
		case k&bit == 0 || bit == isInteger && k&isNumber != 0:
		case bit == isNull:
			words = append(words, name)
		case bit&(isInteger|isArray|isObject) != 0:
			words = append(words, "an "+name)
		default:
			words = append(words, "a "+name)
		}
	}
	if len(words) > 1 && words[0] == "null" {
		words = append(words[1:], "null")
	}
	return strings.Join(words, " or ")
}

// listValues describes the values of an enumeration: `one of "a", "b"`.
func (e *enumRule) listValues() string {
	const most = 20
	var b strings.Builder
	if len(e.values) > 1 {
		b.WriteString("one of ")
	}
	for i, v := range e.values {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			fmt.Fprintf(&b, "… (%d in all)", len(e.values))
			break
		}
		b.WriteString(clipText(string(v.raw)))
	}
	return b.String()
}

// closestName is the candidate that name is probably a slip of, or "".
func closestName(name string, candidates []string) string {
	const longest = 64
	best, bestDistance := "", 1+min(len(name)/3, 3)
	if len(name) > longest {
		return ""
	}
	for i, c := range candidates {
		if i == 100 || len(c) > longest {
			continue
		}
		if d := near.Distance(foldName(name), foldName(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// foldName makes state_code, stateCode and State-Code one.
func foldName(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}
