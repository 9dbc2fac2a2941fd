package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Sample asks the client's model for a message. MaxTokens must be positive; a message with tool results holds nothing else,
// and a message in which the model uses tools is followed by one with the results of all of them. The errors are those of
// [Ask]; a client may refuse by not answering at all. A long answer travels in the request state where further questions
// follow: see [ErrStateTooLarge].
func Sample(ctx context.Context, key string, params mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	var answer *mcp.CreateMessageResult
	err := AskAll(ctx, SampleQuestion(key, params, &answer))
	return answer, err
}

// SampleQuestion is the question of [Sample]; the answer goes into the variable.
func SampleQuestion(key string, params mcp.CreateMessageParams, into **mcp.CreateMessageResult) Question {
	if params.MaxTokens <= 0 {
		return Question{key: key, invalid: errors.New("sampling: MaxTokens must be positive")}
	}
	if err := checkMessages(params.Messages); err != nil {
		return Question{key: key, invalid: fmt.Errorf("sampling: %w", err)}
	}
	return newQuestion(key, mcp.MethodCreateMessage, &params, func(raw json.RawMessage) error {
		var r mcp.CreateMessageResult
		if !rawjson.IsObject(raw) || mcp.Decode(raw, &r) != nil || len(r.Content) == 0 || r.Role != mcp.RoleUser && r.Role != mcp.RoleAssistant {
			return errAskAgain
		}
		*into = &r
		return nil
	})
}

// checkMessages holds a conversation to what the protocol says of tools in it (client/sampling: message content constraints).
func checkMessages(messages []mcp.SamplingMessage) error {
	for i, m := range messages {
		results := toolResultIDs(m)
		for j, block := range m.Content {
			switch {
			case len(results) > 0 && block.Type != mcp.ContentToolResult:
				return fmt.Errorf("messages[%d].content[%d]: %s beside tool results: a message with tool results holds nothing else", i, j, block.Type)
			case block.ToolUse != nil && !hasToolResult(block.ToolUse.ID, messages[i+1:]):
				return fmt.Errorf("messages[%d].content[%d]: the use %q of the tool %s has no result: the next message must be the user's, with tool results alone",
					i, j, block.ToolUse.ID, block.ToolUse.Name)
			}
		}
	}
	return nil
}

// hasToolResult reports whether the first of the messages holds the result of a use of a tool.
func hasToolResult(id string, messages []mcp.SamplingMessage) bool {
	return len(messages) > 0 && messages[0].Role == mcp.RoleUser && toolResultIDs(messages[0])[id]
}

// toolResultIDs are the ids of the uses that the message answers.
func toolResultIDs(m mcp.SamplingMessage) map[string]bool {
	var ids map[string]bool
	for _, block := range m.Content {
		if block.ToolResult != nil {
			if ids == nil {
				ids = map[string]bool{}
			}
			ids[block.ToolResult.ToolUseID] = true
		}
	}
	return ids
}
