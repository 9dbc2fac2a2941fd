package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Sample asks the client's model for a message. MaxTokens must be positive. Each message has the
// role user or assistant, and content. A message with tool results must hold nothing else, and a
// message with tool uses must be followed by a message with the results of all of them; a result
// must name an earlier use. The errors are the errors of [Ask]; a client may also refuse by not
// answering. If the handler asks further questions, the answer travels in the request state, which
// has a limit: see [Options].MaxState.
func Sample(ctx context.Context, key string, params mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	var answer *mcp.CreateMessageResult
	err := AskAll(ctx, SampleQuestion(key, params, &answer))
	return answer, err
}

// SampleQuestion is the question of [Sample]. The answer is stored in the variable.
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

// checkMessages checks the protocol's rules for the messages of a conversation (client/sampling:
// message content constraints, error handling): roles, content, and the order of tool uses and
// results.
func checkMessages(messages []mcp.SamplingMessage) error {
	used := map[string]bool{} // ids of the tool uses so far
	for i, m := range messages {
		switch {
		case m.Role != mcp.RoleUser && m.Role != mcp.RoleAssistant:
			return fmt.Errorf("messages[%d]: the role is %q: want user or assistant", i, m.Role)
		case len(m.Content) == 0:
			return fmt.Errorf("messages[%d]: the message has no content", i)
		}
		results := toolResultIDs(m)
		for j, block := range m.Content {
			switch {
			case len(results) > 0 && block.Type != mcp.ContentToolResult:
				return fmt.Errorf("messages[%d].content[%d]: %s beside tool results: a message with tool results holds nothing else", i, j, block.Type)
			case block.ToolUse != nil && !hasToolResult(block.ToolUse.ID, messages[i+1:]):
				return fmt.Errorf("messages[%d].content[%d]: the use %q of the tool %s has no result: the next message must be the user's, with tool results alone",
					i, j, block.ToolUse.ID, block.ToolUse.Name)
			case block.ToolResult != nil && !used[block.ToolResult.ToolUseID]:
				return fmt.Errorf("messages[%d].content[%d]: the result of %q has no use: the message before must hold a tool use with this id",
					i, j, block.ToolResult.ToolUseID)
			}
			if block.ToolUse != nil {
				used[block.ToolUse.ID] = true
			}
		}
	}
	return nil
}

// hasToolResult reports whether the first of the messages holds the result of the tool use.
func hasToolResult(id string, messages []mcp.SamplingMessage) bool {
	return len(messages) > 0 && messages[0].Role == mcp.RoleUser && toolResultIDs(messages[0])[id]
}

// toolResultIDs returns the ids of the tool uses that the message has results for.
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

// Roots asks the client for the directories and files that the server may work on. The key is
// "roots" unless another is given. The errors are the errors of [Ask].
func Roots(ctx context.Context, key ...string) ([]mcp.Root, error) {
	name := "roots"
	if len(key) > 0 {
		name = key[0]
	}
	var roots []mcp.Root
	err := AskAll(ctx, RootsQuestion(name, &roots))
	return roots, err
}

// RootsQuestion is the question of [Roots]. The answer is stored in the variable.
func RootsQuestion(key string, into *[]mcp.Root) Question {
	request := mcp.InputRequest{Method: mcp.MethodListRoots, Params: json.RawMessage("{}")}
	return Question{key: key, request: request, readAnswer: func(raw json.RawMessage) error {
		var r mcp.ListRootsResult
		if !rawjson.IsObject(raw) || mcp.Decode(raw, &r) != nil || rawjson.Lookup(raw, "roots") == nil {
			return errAskAgain
		}
		*into = r.Roots
		return nil
	}}
}
