package modelhttp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Said is an error in the shape that most servers have.
type Said struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Code    string `json:"code"`
}

// ReadError reads an error in whatever shape a server gives it: an object with an error, with a code that may be a number, a list of
// one such, a string instead of the error, its members at the top, a detail, or no JSON at all.
func ReadError(body []byte) (e Said) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var top map[string]any
	if json.Unmarshal(body, &top) != nil {
		return Said{Message: firstLine(string(body))}
	}
	from := top
	switch inner := top["error"].(type) {
	case map[string]any:
		from = inner
	case string:
		return Said{Message: inner}
	}
	text := func(key string) string {
		if v, ok := from[key]; ok && v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	e = Said{text("message"), text("type"), text("param"), text("code")}
	if e.Message == "" {
		e.Message = text("detail")
	}
	return e
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return string([]rune(line)[:min(utf8.RuneCountInString(line), 300)])
}

// Says is what a server says, as it stands behind what it means; empty where it says nothing.
func (e Said) Says() string {
	if e.Message == "" {
		return ""
	}
	return " (it says: " + e.Message + ")"
}
