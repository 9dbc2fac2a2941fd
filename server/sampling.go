package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Sample asks the client's model for a message. MaxTokens must be positive. The errors are those of [Ask]; a client may
// refuse by not answering at all. A long answer travels in the request state where further questions follow: see
// [ErrStateTooLarge].
func Sample(ctx context.Context, key string, params mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	var answer *mcp.CreateMessageResult
	err := AskAll(ctx, SampleQuestion(key, params, &answer))
	return answer, err
}

// SampleQuestion is the question of [Sample]; the answer goes into the variable.
func SampleQuestion(key string, params mcp.CreateMessageParams, into **mcp.CreateMessageResult) Question {
	if params.MaxTokens <= 0 {
		return Question{key: key, err: errors.New("sampling: MaxTokens must be positive")}
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
