package agent

import "github.com/dowel-mcp/dowel/mcp"

// lost is the result of a call whose own is not known.
const lost = "The work ended before this tool had a result: it may have run, or not."

// Mend returns a conversation as providers take it: roles take turns, no message is empty, each call has exactly one result at the
// beginning of the next message, in the order of the calls, and each result its call. A result that is missing is one that says
// so. The messages that are given stay as they are.
func Mend(messages []Message) []Message { return mended(messages).messages }

func mended(messages []Message) (h history) {
	h.messages = make([]Message, 0, len(messages))
	var said []mcp.Content // of the user, since the last reply
	for i := range messages {
		m := &messages[i]
		switch {
		case m.blank():
		case m.Role == mcp.RoleUser:
			said = append(said, m.Content...)
		default:
			h.turn(said)
			said = nil
			if n := len(h.messages); n > 0 && h.messages[n-1].Role == m.Role {
				h.say(m.Role, m.Content...)
			} else {
				h.add(*m)
			}
		}
	}
	h.turn(said)
	return h
}

// turn adds what the user has said, with results of the last reply's calls.
func (h *history) turn(said []mcp.Content) {
	if all := answered(h.open(), said); len(all) > 0 {
		h.say(mcp.RoleUser, all...)
	}
}

// open are the calls of the last message, which have no result yet.
func (h *history) open() []*mcp.ToolUse {
	if n := len(h.messages); n > 0 {
		return h.messages[n-1].Calls()
	}
	return nil
}

// answered is content with exactly one result of each call.
func answered(calls []*mcp.ToolUse, content []mcp.Content) (all []mcp.Content) {
	results, rest := map[string]mcp.Content{}, []mcp.Content(nil)
	for _, block := range content {
		if block.ToolResult == nil {
			rest = append(rest, block)
		} else if _, twice := results[block.ToolResult.ToolUseID]; !twice {
			results[block.ToolResult.ToolUseID] = block
		}
	}
	for _, use := range calls {
		block, ok := results[use.ID]
		if !ok {
			block = mcp.Content{Type: mcp.ContentToolResult, ToolResult: new(failed(use.ID, lost))}
		}
		all = append(all, block)
	}
	return append(all, rest...)
}
