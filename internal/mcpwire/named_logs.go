package mcpwire

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// MetaRequest is the key of _meta that names the request of a log message, by its id, between two
// replicas. In the protocol, log messages on a shared channel name no request.
const MetaRequest = "dowel/request"

// namedLogsKey is the context key of [WithNamedLogs].
type namedLogsKey struct{}

// WithNamedLogs returns a context for a connection between two replicas: log messages name their
// requests.
func WithNamedLogs(ctx context.Context) context.Context {
	return context.WithValue(ctx, namedLogsKey{}, true)
}

// HasNamedLogs reports whether ctx comes from WithNamedLogs.
func HasNamedLogs(ctx context.Context) bool { return ctx.Value(namedLogsKey{}) != nil }

// NameRequest returns the params of a log message with the id of its request. nil removes an id.
func NameRequest(params []byte, id []byte) []byte {
	if id == nil && rawjson.Lookup(rawjson.Lookup(params, "_meta"), MetaRequest) == nil {
		return params
	}
	return SetMeta(params, MetaRequest, id)
}

// FindRequest returns the id of the request that a log message names.
func FindRequest(params []byte) (id jsonrpc.ID, ok bool) {
	raw := rawjson.Lookup(rawjson.Lookup(params, "_meta"), MetaRequest)
	if raw == nil {
		return id, false
	}
	id, err := jsonrpc.ParseID(raw)
	return id, err == nil
}
