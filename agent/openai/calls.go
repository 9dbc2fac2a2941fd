package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
)

type fragment = sdk.ChatCompletionChunkChoiceDeltaToolCall

// call is a tool call that comes in fragments.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
	extra     json.RawMessage // extra_content: Gemini's signature of the thoughts that led to the call
}

func (c *call) blank() bool { return isBlank(c.arguments.String()) }

// whole reports whether the arguments are an object. Most pieces do not end one, which is seen without reading all.
func (c *call) whole() bool {
	text := strings.TrimRight(c.arguments.String(), " \t\r\n")
	return strings.HasSuffix(text, "}") && isObject([]byte(text))
}

// calls puts calls together from their fragments, which may be mixed.
type calls struct {
	tools []string // the names of those that are offered
	all   []*call
}

// add takes a fragment. It belongs to the last call of its index, unless it is the beginning of another one: servers exist that
// number all of them 0, or none.
func (c *calls) add(f fragment) {
	at := c.of(f)
	if at == nil || c.begins(f, at) {
		at = &call{index: f.Index}
		c.all = append(c.all, at)
	}
	if at.id == "" {
		at.id = f.ID
	}
	if f.Function.Name != at.name { // some repeat it with each fragment
		at.name += f.Function.Name
	}
	at.arguments.WriteString(f.Function.Arguments)
	if extra, ok := f.JSON.ExtraFields["extra_content"]; ok && extra.Raw() != "null" {
		at.extra = json.RawMessage(extra.Raw())
	}
}

// of returns the call that a fragment belongs to, if it is not the beginning of one: that of its index with its id, or else the
// last of its index.
func (c *calls) of(f fragment) (last *call) {
	for _, at := range slices.Backward(c.all) {
		switch {
		case f.JSON.Index.Valid() && at.index != f.Index:
		case f.ID != "" && at.id == f.ID:
			return at
		case last == nil:
			last = at
		}
	}
	return last
}

// begins reports whether a fragment is the beginning of another call than the one before it.
func (c *calls) begins(f fragment, at *call) bool {
	name, more := f.Function.Name, !isBlank(f.Function.Arguments)
	switch {
	case name == "":
		return false
	case f.ID != "" && at.id == f.ID: // what is behind a whole object is of another call, even so
		return at.whole() && more
	case f.ID != "" && at.id != "":
		return true
	case name != at.name:
		return !at.blank() || at.name != "" && !c.grows(at.name, name)
	case at.whole():
		return more || !f.JSON.Index.Valid()
	}
	return at.blank() && !more && at.id == "" // two calls of a function without arguments
}

// grows reports whether a name is cut in two, rather than that of two tools. What is no tool's name is taken for a part of one.
func (c *calls) grows(head, tail string) bool {
	known, another := slices.Contains(c.tools, head), slices.Contains(c.tools, tail)
	if known == another {
		return !known
	}
	return slices.ContainsFunc(c.tools, func(name string) bool { return strings.HasPrefix(name, head+tail) })
}

// uses returns the calls, each with an id of its own. Of a reply that was cut off, only those whose arguments are whole: what has
// none yet may be about to get them.
func (c *calls) uses(cut bool) (uses []mcp.ToolUse) {
	slices.SortStableFunc(c.all, func(a, b *call) int { return int(a.index - b.index) })
	seen := map[string]bool{}
	for _, at := range c.all {
		use := mcp.ToolUse{ID: at.id, Name: cmp.Or(at.name, noName), Input: input(at.arguments.String())}
		if at.name == "" && at.blank() || cut && (at.blank() || !isObject(use.Input)) {
			continue
		}
		if use.ID == "" || seen[use.ID] {
			use.ID = mint()
		}
		seen[use.ID] = true
		at.id = use.ID
		uses = append(uses, use)
	}
	return uses
}

// extras returns what came with the calls and goes back with them, by id; nil for nothing.
func (c *calls) extras(uses []mcp.ToolUse) (extras map[string]json.RawMessage) {
	for _, at := range c.all {
		if at.extra == nil || !slices.ContainsFunc(uses, func(u mcp.ToolUse) bool { return u.ID == at.id }) {
			continue
		}
		if extras == nil {
			extras = map[string]json.RawMessage{}
		}
		extras[at.id] = at.extra
	}
	return extras
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// noName stands for that of a call which has none.
const noName = "unknown"

// mint makes an id for a call that has none.
func mint() string { return "call_" + rand.Text()[:20] }
