package agent

import "github.com/dowel-mcp/dowel/mcp"

// lostResult is the result of a call if the real result is unknown.
const lostResult = "The work ended before this tool had a result: it may have run, or not."

// Mend returns a conversation as providers accept it. Roles alternate, and no message is empty.
// Each call has exactly one result at the beginning of the next message, in the order of the
// calls, and each result has its call. A missing result becomes an error that says so. messages
// stays as it is.
func Mend(messages []Message) []Message { return mendedHistory(messages).messages }

func mendedHistory(messages []Message) (h history) {
	h.messages = make([]Message, 0, len(messages))
	var said []mcp.Content // the user's, since the last reply
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

// appendUserTurn adds the user's content, completed with results of the last reply's calls.
func (h *history) appendUserTurn(said []mcp.Content) {
	if all := withResults(h.openCalls(), said); len(all) > 0 {
		h.appendContent(mcp.RoleUser, all...)
	}
}

// openCalls returns the calls of the last message, which are without results.
func (h *history) openCalls() []*mcp.ToolUse {
	if n := len(h.messages); n > 0 {
		return h.messages[n-1].Calls()
	}
	return nil
}

// withResults returns content with exactly one result for each call, in the order of the calls.
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
