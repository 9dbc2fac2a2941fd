package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// pendingCall is a tool call that is still arriving in fragments.
type pendingCall struct {
	index     int
	id, name  string
	arguments strings.Builder
	extra     json.RawMessage // extra_content: Gemini's signature of the thoughts that led to the call
}

func (c *pendingCall) hasNoArguments() bool { return isBlank(c.arguments.String()) }

// isComplete reports whether the arguments are an object. Most fragments do not end an object,
// which the last character shows without parsing all.
func (c *pendingCall) isComplete() bool {
	text := strings.TrimRight(c.arguments.String(), " \t\r\n")
	return strings.HasSuffix(text, "}") && isObject([]byte(text))
}

// callAssembler puts the tool calls of a reply together from their fragments. Servers disagree on
// how they mark fragments: with an index, with an id, with both, with neither, or with the same
// index for all calls. So the assembler decides by all of them and by the state of the call that
// the fragment would continue.
type callAssembler struct {
	tools []string // the names of the offered tools
	calls []*pendingCall
}

// addFragment adds f to the call that it continues, or starts a new call with it.
func (a *callAssembler) addFragment(f fragment) {
	call := a.findCall(f)
	if call == nil || a.startsCall(f, call) {
		call = &pendingCall{}
		if f.Index != nil {
			call.index = *f.Index
		}
		a.calls = append(a.calls, call)
	}
	if call.id == "" {
		call.id = f.ID
	}
	if f.Function.Name != call.name { // some servers repeat the name in each fragment
		call.name += f.Function.Name
	}
	call.arguments.WriteString(f.Function.Arguments)
	if len(f.ExtraContent) > 0 && string(f.ExtraContent) != "null" {
		call.extra = f.ExtraContent
	}
}

// findCall returns the call that f continues unless it starts a new one: the call with its index
// and id, or else the last call with its index. It returns nil before the first.
func (a *callAssembler) findCall(f fragment) (last *pendingCall) {
	for _, call := range slices.Backward(a.calls) {
		switch {
		case f.Index != nil && call.index != *f.Index:
		case f.ID != "" && call.id == f.ID:
			return call
		case last == nil:
			last = call
		}
	}
	return last
}

// startsCall reports whether f starts a new call, rather than continue call.
func (a *callAssembler) startsCall(f fragment, call *pendingCall) bool {
	name, hasArguments := f.Function.Name, !isBlank(f.Function.Arguments)
	switch {
	case name == "":
		return false
	case f.ID != "" && call.id == f.ID: // a complete object takes no more arguments, whatever the id says
		return call.isComplete() && hasArguments
	case f.ID != "" && call.id != "":
		return true
	case name != call.name:
		return !call.hasNoArguments() || call.name != "" && !a.continuesName(call.name, name)
	case call.isComplete():
		return hasArguments || f.Index == nil
	}
	return call.hasNoArguments() && !hasArguments && call.id == "" // two calls of a function without arguments
}

// continuesName reports whether head and tail are parts of one name, rather than the names of two
// tools. A text that does not name a tool counts as a part.
func (a *callAssembler) continuesName(head, tail string) bool {
	headIsTool, tailIsTool := slices.Contains(a.tools, head), slices.Contains(a.tools, tail)
	if headIsTool == tailIsTool {
		return !headIsTool
	}
	return slices.ContainsFunc(a.tools, func(name string) bool { return strings.HasPrefix(name, head+tail) })
}

// toolUses returns the calls in the order of their indices, each with a unique ID. If the reply was
// cut off, it leaves out calls with incomplete arguments. A call without any arguments counts as
// incomplete, because they may have been cut off.
func (a *callAssembler) toolUses(cut bool) (uses []mcp.ToolUse) {
	slices.SortStableFunc(a.calls, func(x, y *pendingCall) int { return cmp.Compare(x.index, y.index) })
	seen := map[string]bool{}
	for _, call := range a.calls {
		use := mcp.ToolUse{ID: call.id, Name: cmp.Or(call.name, unknownName), Input: parseArguments(call.arguments.String())}
		if call.name == "" && call.hasNoArguments() || cut && (call.hasNoArguments() || !isObject(use.Input)) {
			continue
		}
		if use.ID == "" || seen[use.ID] {
			use.ID = newCallID()
		}
		seen[use.ID] = true
		call.id = use.ID
		uses = append(uses, use)
	}
	return uses
}

// extraContent returns the extra_content of the given calls by their ids; nil if none has any.
func (a *callAssembler) extraContent(uses []mcp.ToolUse) (extra map[string]json.RawMessage) {
	for _, call := range a.calls {
		if call.extra == nil || !slices.ContainsFunc(uses, func(u mcp.ToolUse) bool { return u.ID == call.id }) {
			continue
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra[call.id] = call.extra
	}
	return extra
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// unknownName is the name of a call that came without one.
const unknownName = "unknown"

func newCallID() string { return "call_" + rand.Text()[:20] }
