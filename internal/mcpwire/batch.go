package mcpwire

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// IsBatch reports whether the frame holds a JSON array.
func IsBatch(frame []byte) bool {
	pos := rawjson.Space(frame, 0)
	return pos < len(frame) && frame[pos] == '['
}

// SplitBatch splits a batch into its messages, at most most. The error is an [*mcp.Error]: its code
// is [jsonrpc.CodeParse] after a syntax error, else [jsonrpc.CodeInvalidRequest].
func SplitBatch(frame []byte, most int) (messages []json.RawMessage, err error) {
	if err := rawjson.CheckAll(frame); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: err.Error()}
	}
	for it := rawjson.Array(frame); it.Next(); {
		if len(messages) == most {
			return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "the batch holds more than %d messages", most)
		}
		messages = append(messages, it.Value)
	}
	if len(messages) == 0 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the batch is empty"}
	}
	return messages, nil
}
