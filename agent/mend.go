package agent

import "github.com/dowel-mcp/dowel/mcp"

// lostResult is the result of a call whose own is not known.
const lostResult = "The work ended before this tool had a result: it may have run, or not."

// Mend returns a conversation as providers take it: roles take turns, no message is empty, each call has exactly one result at the
// beginning of the next message, in the order of the calls, and each result its call. A result that is missing is one that says
// so. The messages that are given stay as they are.
func Mend(messages []Message) []Message { return mendedHistory(messages).messages }

func mendedHistory(messages []Message) (h history) {
	h.messages = make([]Message, 0, len(messages))
	var said []mcp.Content // of the user, since the last reply
	for i := range messages {
		m := &messages[i]
		switch {
		case m.isBlank():
		case m.Role == mcp.RoleUser:
			said = append(said, m.Content...)
		default:
			h.appendUserTurn(said)
			said = nil
			if n := len(h.messages); n > 0 && h.messages[n-1].Role == m.Role {
				h.appendContent(m.Role, m.Content...)
			} else {
				h.appendMessage(*m)
			}
		}
	}
	h.appendUserTurn(said)
	return h
}

// appendUserTurn adds what the user has said, with results of the last reply's calls.
func (h *history) appendUserTurn(said []mcp.Content) {
	if all := withResults(h.openCalls(), said); len(all) > 0 {
		h.appendContent(mcp.RoleUser, all...)
	}
}

// openCalls are the calls of the last message, which have no result yet.
func (h *history) openCalls() []*mcp.ToolUse {
	if n := len(h.messages); n > 0 {
		return h.messages[n-1].Calls()
	}
	return nil
}

// withResults is content with exactly one result of each call.
func withResults(calls []*mcp.ToolUse, content []mcp.Content) (all []mcp.Content) {
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
			block = mcp.Content{Type: mcp.ContentToolResult, ToolResult: new(errorResult(use.ID, lostResult))}
		}
		all = append(all, block)
	}
	return append(all, rest...)
}
