package server

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Roots asks the client for the directories and files that the server may work on. The key is "roots" unless one is given.
// The errors are those of [Ask].
func Roots(ctx context.Context, key ...string) ([]mcp.Root, error) {
	name := "roots"
	if len(key) > 0 {
		name = key[0]
	}
	var roots []mcp.Root
	err := AskAll(ctx, RootsQuestion(name, &roots))
	return roots, err
}

// RootsQuestion is the question of [Roots]; the answer goes into the variable.
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
