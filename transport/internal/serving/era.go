package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"github.com/dowel-mcp/dowel/transport/internal/frames"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// era is what the protocol's two eras do differently on the serving side. Nothing behind it asks which one it is.
type era interface {
	// request fills r from the fields of its _meta, or refuses it.
	request(r *mcp.Request, f metaFields) *mcp.Error
	// own answers the methods that belong to the edge; handled is false for all others.
	own(c *call) (res *mcp.Result, err error, handled bool)
	// appendResult appends the response that holds a complete or unsettled result.
	appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error)
	// refuse gives a handler's error the era's form: a protocol error, or a result that a model can read.
	refuse(r *mcp.Request, err error) (*mcp.Result, *mcp.Error)
	// appendChange appends the notification of a change on the subscription that c is.
	appendChange(dst []byte, c *call, change mcp.Change) []byte
	// settle turns a result that asks into the request to serve next; nil where the result goes out as it is.
	settle(ctx context.Context, c *call, round int, res *mcp.Result) (next *mcp.Request, err error)
	// ended follows the response of a subscription that the server ended.
	ended(dst []byte, c *call) []byte
}

// metaFields are the raw values of the protocol's keys in a request's _meta.
type metaFields struct {
	version, clientInfo, capabilities, logLevel, progressToken []byte
}

// metaReader reads the _meta of requests that come one after the other. Clients send the same bytes each time: then what
// they were read as is used again, which is the same for everybody who reads them.
type metaReader struct {
	last   json.RawMessage
	fields metaFields
}

// find returns the _meta of params, nil if there is none. Where the params begin with the bytes that came last, it is
// found without a look at its members.
func (m *metaReader) find(params json.RawMessage) json.RawMessage {
	const first = `{"_meta":`
	end := len(first) + len(m.last)
	if m.last != nil && len(params) > end && string(params[:len(first)]) == first && bytes.Equal(params[len(first):end], m.last) {
		return params[len(first):end]
	}
	return rawjson.Lookup(params, "_meta")
}

func (m *metaReader) read(meta json.RawMessage) metaFields {
	if m.last == nil || !bytes.Equal(m.last, meta) {
		m.last = bytes.Clone(meta)
		m.fields = readMeta(m.last)
	}
	return m.fields
}

func readMeta(meta json.RawMessage) (f metaFields) {
	for it := rawjson.Object(meta); it.Next(); {
		switch string(it.Key) {
		case mcp.MetaProtocolVersion:
			f.version = it.Value
		case mcp.MetaClientInfo:
			f.clientInfo = it.Value
		case mcp.MetaClientCapabilities:
			f.capabilities = it.Value
		case mcp.MetaLogLevel:
			f.logLevel = it.Value
		case mcp.MetaProgressToken:
			f.progressToken = it.Value
		}
	}
	return f
}

// progress keeps a token that is a string or a number.
func (f metaFields) progress(r *mcp.Request) *mcp.Error {
	if f.progressToken == nil {
		return nil
	}
	if _, err := jsonrpc.ParseID(f.progressToken); err != nil {
		return mcp.InvalidParams("_meta.progressToken must be a string or a number")
	}
	r.ProgressToken = f.progressToken
	return nil
}

// edgeMembers returns which members of a result belong to the edge. Those of caching do where the protocol says what a result
// holds, and belong to the handler in results of methods or types that are not the core's.
func edgeMembers(method string, t mcp.ResultType) func(key []byte) bool {
	_, protocol := frames.MethodNames[method]
	cached := protocol && coreType(t)
	return func(key []byte) bool {
		switch string(key) {
		case "resultType", "_meta":
			return true
		case "ttlMs", "cacheScope":
			return cached
		}
		return false
	}
}

func coreType(t mcp.ResultType) bool {
	return complete(t) || t == mcp.ResultInputRequired
}

func complete(t mcp.ResultType) bool { return t == "" || t == mcp.ResultComplete }

// foreign reports whether the body of a result may hold what belongs to the edge.
func foreign(res *mcp.Result, body []byte) bool {
	return res.Raw != nil || !protocolType(res.Value) || bytes.HasPrefix(body, []byte(`{"_meta":`))
}

// protocolType reports whether a value is of a type of package mcp, whose _meta is encoded first and which has no members
// that belong to the edge.
func protocolType(v any) bool {
	switch v.(type) {
	case nil, *mcp.CallToolResult, *mcp.ListToolsResult, *mcp.ListResourcesResult, *mcp.ListResourceTemplatesResult,
		*mcp.ReadResourceResult, *mcp.ListPromptsResult, *mcp.GetPromptResult, *mcp.CompleteResult, *mcp.DiscoverResult,
		*mcp.InputRequiredResult:
		return true
	}
	return false
}

// sizeHint estimates the bytes of a result's response, so that a large one is not copied while it grows.
func sizeHint(res *mcp.Result) int {
	const envelope = 104 // and the keys of _meta
	n := envelope + len(res.Raw) + len(res.ServerInfo)
	if r, ok := res.Value.(*mcp.CallToolResult); ok && r != nil {
		if r.StructuredContent != nil {
			n += len(`,"structuredContent":`) + len(r.StructuredContent)
		}
		for i := range r.Content {
			n += len(r.Content[i].Text) + len(r.Content[i].Text)/16 + len(r.Content[i].Data)*4/3 + 64
		}
	}
	return n
}
