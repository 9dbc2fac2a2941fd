package serving

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// modern is the era of revisions 2026-07-28 and later, in which each request carries its own
// metadata. It is stateless.
type modern struct {
	revisions []mcp.Revision
	log       func(r *mcp.Request, err error)
}

func (m *modern) fillRequest(r *mcp.Request, f metaFields) *mcp.Error {
	version, ok := readRevision(f.version)
	if !ok && r.Method == mcpwire.MethodInitialize {
		asked, _ := rawjson.String(rawjson.Lookup(r.Params, "protocolVersion"))
		return refuseHandshake(asked, m.revisions) // the only hint that a legacy client shows its user
	}
	if !ok {
		return mcp.InvalidParams("_meta must hold %s, the protocol version of the request: a string", mcpwire.MetaProtocolVersion)
	}
	if !version.Modern() || !slices.Contains(m.revisions, version) {
		return mcpwire.UnsupportedVersion(string(version), m.revisions)
	}
	if !rawjson.IsObject(f.capabilities) {
		return mcp.InvalidParams("_meta must hold %s: an object, empty if there are none", mcpwire.MetaClientCapabilities)
	}
	if f.logLevel != nil {
		level, _ := rawjson.String(f.logLevel)
		if r.LogLevel = mcp.LoggingLevel(level); r.LogLevel.Severity() < 0 {
			return mcp.InvalidParams("%q is not a log level: use one of %v", level, mcpwire.LoggingLevels())
		}
	}
	r.Revision, r.ClientCapabilities, r.ClientInfo = version, f.capabilities, f.clientInfo
	if isRemoved(r.Method) {
		return mcp.MethodNotFound(r.Method)
	}
	return f.setProgressToken(r)
}

// isRemoved reports whether only legacy revisions have the method.
func isRemoved(method string) bool {
	switch method {
	case mcpwire.MethodInitialize, mcpwire.MethodPing, mcpwire.MethodSetLevel, mcpwire.MethodSubscribe, mcpwire.MethodUnsubscribe:
		return true
	}
	return false
}

// readRevision parses a JSON string. It does not allocate for the latest revision.
func readRevision(raw []byte) (mcp.Revision, bool) {
	if string(raw) == `"`+string(mcp.LatestRevision)+`"` {
		return mcp.LatestRevision, true
	}
	s, ok := rawjson.String(raw)
	return mcp.Revision(s), ok && s != ""
}

func (m *modern) appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error) {
	if !isCoreType(res.Type) {
		if refused := c.checkExtensionType(res.Type); refused != nil {
			return dst, refused
		}
	}
	dst = append(frames.AppendResultHead(dst, c.id), `{"resultType":"`...)
	if res.Type == "" {
		dst = append(dst, mcp.ResultComplete...)
	} else {
		dst = append(dst, res.Type...)
	}
	dst = append(dst, '"')
	if mcpwire.Cacheable(c.req.Method) && isComplete(res.Type) {
		dst = appendCacheMembers(dst, res.Cache)
	}
	dst, err := appendBody(dst, m.limitRevisions(res), c)
	return append(dst, '}', '}'), err
}

// limitRevisions removes revisions that this edge does not speak from a discover result.
func (m *modern) limitRevisions(res *mcp.Result) *mcp.Result {
	d, ok := res.Value.(*mcp.DiscoverResult)
	if !ok || d == nil {
		return res
	}
	limited, told := *res, *d
	told.SupportedVersions = slices.DeleteFunc(slices.Clone(d.SupportedVersions), func(r mcp.Revision) bool {
		return !slices.Contains(m.revisions, r)
	})
	limited.Value = &told
	return &limited
}

func appendCacheMembers(dst []byte, cache mcp.Cache) []byte {
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, max(0, cache.TTL.Milliseconds()), 10)
	if cache.Scope == mcp.CachePublic {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}

// appendBody appends the members of the result after the members that the edge writes, without
// the closing brace.
func appendBody(dst []byte, res *mcp.Result, c *call) ([]byte, error) {
	if res.ServerInfo != nil {
		if err := frames.CheckRaw("the server's info", res.ServerInfo); err != nil {
			return dst, err
		}
	}
	metaAt := len(dst)
	dst = appendEdgeMeta(dst, res, c)
	bodyAt := len(dst)
	if res.Raw != nil {
		if err := frames.CheckRaw("the result", res.Raw); err != nil {
			return dst, err
		}
		return appendRawMembers(dst[:metaAt], res.Raw, res, c), nil
	}
	dst, err := frames.AppendResult(dst, res)
	switch {
	case err != nil:
		return dst, err
	case mayHoldEdgeMembers(res, dst[bodyAt:]):
		own := bytes.Clone(dst[bodyAt:])
		return appendRawMembers(dst[:metaAt], own, res, c), nil
	case dst[bodyAt+1] == '}':
		return dst[:bodyAt], nil
	}
	dst[bodyAt] = ',' // replaces the object's opening brace
	return dst[:len(dst)-1], nil
}

// appendEdgeMeta appends the _meta member that the edge writes, or nothing if it would be empty.
func appendEdgeMeta(dst []byte, res *mcp.Result, c *call) []byte {
	subscription := c.req.Method == mcp.MethodListen
	if res.ServerInfo == nil && !subscription {
		return dst
	}
	dst = append(dst, `,"_meta":{`...)
	dst = appendMetaMembers(dst, res, c)
	return append(dst, '}')
}

func appendMetaMembers(dst []byte, res *mcp.Result, c *call) []byte {
	if res.ServerInfo != nil {
		dst = append(dst, `"`+mcpwire.MetaServerInfo+`":`...)
		dst = append(dst, res.ServerInfo...)
	}
	if c.req.Method == mcp.MethodListen {
		if res.ServerInfo != nil {
			dst = append(dst, ',')
		}
		dst = c.id.Append(append(dst, `"`+mcpwire.MetaSubscriptionID+`":`...))
	}
	return dst
}

// appendRawMembers appends the members of a result and replaces the members that the edge writes.
func appendRawMembers(dst, raw []byte, res *mcp.Result, c *call) []byte {
	own := rawjson.Lookup(raw, "_meta")
	if own == nil {
		dst = appendEdgeMeta(dst, res, c)
	} else {
		dst = append(dst, `,"_meta":{`...)
		at := len(dst)
		dst = appendMetaMembers(dst, res, c)
		comma := len(dst)
		if comma > at {
			dst = append(dst, ',')
		}
		var any bool
		dst, any = rawjson.AppendMembers(dst, own, func(key []byte) bool {
			return res.ServerInfo != nil && string(key) == mcpwire.MetaServerInfo || string(key) == mcpwire.MetaSubscriptionID
		})
		if !any {
			dst = dst[:comma]
		}
		dst = append(dst, '}')
	}
	comma := len(dst)
	dst, any := rawjson.AppendMembers(append(dst, ','), raw, edgeMemberFilter(c.req.Method, res.Type))
	if !any {
		dst = dst[:comma]
	}
	return dst
}

func (m *modern) answerOwn(*call) (*mcp.Result, error, bool) { return nil, nil, false }

func (m *modern) encodeError(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	var capability *mcp.CapabilityError
	var protocol *mcp.Error
	switch {
	case errors.As(err, &capability):
		return nil, mcpwire.MissingCapability(capability)
	case errors.As(err, &protocol):
		return nil, toModernError(protocol)
	}
	m.log(r, err)
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "internal error")
}

const lastReserved = -32099

// toModernError replaces codes that revision 2026-07-28 must not send.
func toModernError(e *mcp.Error) *mcp.Error {
	switch e.Code {
	case mcp.CodeResourceNotFound:
		return &mcp.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Message, Data: e.Data}
	case mcpwire.CodeURLElicitationRequired:
		return &mcp.Error{Code: jsonrpc.CodeInternal, Message: e.Message, Data: e.Data}
	}
	if e.Code < mcp.CodeUnsupportedProtocolVersion && e.Code >= lastReserved { // reserved by the specification and not defined
		return &mcp.Error{Code: jsonrpc.CodeInternal, Message: e.Message, Data: e.Data}
	}
	return e
}

// errNothingAsked refuses a result that a client could not answer.
var errNothingAsked = errors.New("the handler asked for input with neither questions nor a request state")

func (m *modern) resolveInput(_ context.Context, c *call, _ int, res *mcp.Result) (*mcp.Request, error) {
	if !mcpwire.MayAsk(c.req.Method) {
		return nil, errors.New("the handler asked for input where the protocol has no way to: " + c.req.Method)
	}
	asked, err := decodeInputRequired(res)
	if err != nil {
		return nil, err
	}
	if len(asked.InputRequests) == 0 && asked.RequestState == nil {
		return nil, errNothingAsked
	}
	return nil, checkAskable(c, asked)
}

// appendChange appends the notification of a change. A change without params is encoded once per
// subscription and then copied.
func (m *modern) appendChange(dst []byte, c *call, change mcp.Notification) []byte {
	if change.Params == nil {
		if frame, ok := c.encodedChanges[change.Method]; ok {
			return append(dst, frame...)
		}
	}
	frame := appendTaggedChange(dst, c.id, change)
	if change.Params == nil {
		if c.encodedChanges == nil {
			c.encodedChanges = map[string][]byte{}
		}
		c.encodedChanges[change.Method] = bytes.Clone(frame[len(dst):])
	}
	return frame
}

func appendTaggedChange(dst []byte, id jsonrpc.ID, change mcp.Notification) []byte {
	const others = 128 // bytes of the envelope and of _meta
	dst = slices.Grow(dst, others+len(change.Method)+len(change.Params))
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = rawjson.AppendString(dst, change.Method)
	dst = append(dst, `,"params":{"_meta":{"`+mcpwire.MetaSubscriptionID+`":`...)
	dst = frames.AppendMembers(id.Append(dst), rawjson.Lookup(change.Params, "_meta"), func(key []byte) bool { return string(key) == mcpwire.MetaSubscriptionID })
	dst = frames.AppendMembers(dst, change.Params, func(key []byte) bool { return string(key) == "_meta" })
	return append(dst, '}')
}

func (m *modern) appendEnd(dst []byte, c *call) []byte {
	id := c.id.Append([]byte(`{"requestId":`))
	return jsonrpc.AppendNotification(dst, mcpwire.NotificationCancelled, append(id, '}'))
}
