package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// era is everything that the two eras of the protocol do differently on the serving side. Code
// that has an era does not ask which one it is.
type era interface {
	// fillRequest sets the fields of r that _meta determines, or refuses r.
	fillRequest(r *mcp.Request, f metaFields) *mcp.Error
	// answerOwn answers the methods that the edge answers itself. handled is false for all
	// others.
	answerOwn(c *call) (res *mcp.Result, err error, handled bool)
	// appendResult appends the response with a complete result, or with one that asks for input.
	appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error)
	// encodeError turns the error of a handler into a protocol error, or into a result that tells
	// a model about the error.
	encodeError(r *mcp.Request, err error) (*mcp.Result, *mcp.Error)
	// appendChange appends the notification of a change on the subscription c.
	appendChange(dst []byte, c *call, change mcp.Notification) []byte
	// resolveInput obtains the input that res asks for and returns the request to serve next.
	// next is nil if res is sent to the client as it is.
	resolveInput(ctx context.Context, c *call, round int, res *mcp.Result) (next *mcp.Request, err error)
	// appendEnd appends the frame that follows the response of an ended subscription, if any.
	appendEnd(dst []byte, c *call) []byte
}

// metaFields holds the raw values of the protocol's keys in the _meta of a request. A value is
// nil if the key is missing.
type metaFields struct {
	version, clientInfo, capabilities, logLevel, progressToken []byte
}

// metaReader reads the _meta of consecutive requests. Most clients send the same bytes each time,
// so it keeps the fields of the last _meta and returns them again if the bytes are equal. The
// fields are shared and must not be changed. It is safe for concurrent use.
type metaReader struct{ last atomic.Pointer[knownMeta] }

// knownMeta is a _meta with its fields. It does not change.
type knownMeta struct {
	raw    json.RawMessage
	fields metaFields
}

// findMeta returns the _meta of params, or nil if it is missing. If params begin with the last
// _meta, it need not scan them.
func (m *metaReader) findMeta(params json.RawMessage) json.RawMessage {
	const first = `{"_meta":`
	if known := m.last.Load(); known != nil {
		end := len(first) + len(known.raw)
		if len(params) > end && string(params[:len(first)]) == first && bytes.Equal(params[len(first):end], known.raw) {
			return params[len(first):end]
		}
	}
	return rawjson.Lookup(params, "_meta")
}

func (m *metaReader) readFields(meta json.RawMessage) metaFields {
	if meta == nil {
		return metaFields{}
	}
	known := m.last.Load()
	if known == nil || !bytes.Equal(known.raw, meta) {
		raw := bytes.Clone(meta)
		known = &knownMeta{raw, readMeta(raw)}
		m.last.Store(known)
	}
	return known.fields
}

func readMeta(meta json.RawMessage) (f metaFields) {
	for it := rawjson.Object(meta); it.Next(); {
		switch string(it.Key) {
		case mcpwire.MetaProtocolVersion:
			f.version = it.Value
		case mcpwire.MetaClientInfo:
			f.clientInfo = it.Value
		case mcpwire.MetaClientCapabilities:
			f.capabilities = it.Value
		case mcpwire.MetaLogLevel:
			f.logLevel = it.Value
		case mcpwire.MetaProgressToken:
			f.progressToken = it.Value
		}
	}
	return f
}

// setProgressToken sets the progress token of r, which must be a string or a number.
func (f metaFields) setProgressToken(r *mcp.Request) *mcp.Error {
	if f.progressToken == nil {
		return nil
	}
	if _, err := jsonrpc.ParseID(f.progressToken); err != nil {
		return mcp.InvalidParams("_meta.progressToken must be a string or a number")
	}
	r.ProgressToken = f.progressToken
	return nil
}

// edgeMemberFilter returns a function that reports whether a member of a result is written by the
// edge. The caching members are, but only in results that the protocol itself defines; in results
// of extensions they belong to the handler.
func edgeMemberFilter(method string, t mcp.ResultType) func(key []byte) bool {
	_, protocol := frames.MethodNames[method]
	cached := protocol && isCoreType(t)
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

func isCoreType(t mcp.ResultType) bool {
	return isComplete(t) || t == mcp.ResultInputRequired
}

func isComplete(t mcp.ResultType) bool { return t == "" || t == mcp.ResultComplete }

// mayHoldEdgeMembers reports whether the encoded result may contain members that the edge writes,
// so that they must be filtered.
func mayHoldEdgeMembers(res *mcp.Result, body []byte) bool {
	return res.Raw != nil || !isProtocolType(res.Value) || bytes.HasPrefix(body, []byte(`{"_meta":`))
}

// isProtocolType reports whether v is a result type of package mcp. These encode _meta first and
// have no members that the edge writes.
func isProtocolType(v any) bool {
	switch v.(type) {
	case nil, *mcp.CallToolResult, *mcp.ListToolsResult, *mcp.ListResourcesResult, *mcp.ListResourceTemplatesResult,
		*mcp.ReadResourceResult, *mcp.ListPromptsResult, *mcp.GetPromptResult, *mcp.CompleteResult, *mcp.DiscoverResult,
		*mcp.InputRequiredResult:
		return true
	}
	return false
}

// estimateSize estimates the size of the response in bytes, to avoid copies while a large result
// is encoded.
func estimateSize(res *mcp.Result) int {
	const envelope = 104 // including the keys of _meta
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
