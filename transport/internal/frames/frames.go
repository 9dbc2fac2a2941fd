// Package frames holds the helpers that the packages serving and calling share: they show frames
// to taps, count unaddressed frames, and encode results and ids.
package frames

import (
	"fmt"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// MaxBatch is the highest number of messages in a batch. Handling a message costs far more than
// its bytes on the wire.
const MaxBatch = 1000

// DefaultMaxConcurrent is the largest number of requests in flight on a connection, unless an
// option says otherwise.
const DefaultMaxConcurrent = 1024

// MethodNames holds the method names of the protocol, so that a parser does not allocate them.
var MethodNames = mcpwire.MethodNames()

// UnquoteID returns the integer id for a string id that spells an integer, such as "1", and any
// other id unchanged. Requests of this side have integer ids, but some peers answer with strings.
func UnquoteID(id jsonrpc.ID) jsonrpc.ID {
	if _, ok := id.Int(); ok {
		return id
	}
	if s, ok := rawjson.String(id.Append(nil)); ok {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return jsonrpc.IntID(n)
		}
	}
	return id
}

// AppendResult appends the JSON object of res, "{}" if res is empty. It returns an error if the
// value cannot be encoded, panics while it is encoded, or is encoded as anything but an object.
func AppendResult(dst []byte, res *mcp.Result) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encoding %T panicked: %v", res.Value, p)
		}
	}()
	switch {
	case res.Raw != nil:
		return append(dst, res.Raw...), CheckRaw("the result", res.Raw)
	case res.Value != nil:
		if out, err = mcp.AppendEncode(dst, res.Value); err == nil && out[len(dst)] != '{' {
			err = fmt.Errorf("%T is encoded as no object", res.Value)
		}
		return out, err
	}
	return append(dst, "{}"...), nil
}

// CheckRaw returns an error if raw, which the author of a handler made, is not a JSON object in
// UTF-8. name says in the error what raw is.
func CheckRaw(name string, raw []byte) error {
	if err := rawjson.CheckObject(raw, func([]byte, []byte) {}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// AppendResultHead appends a response up to its result. The caller appends the result's object and
// the closing brace.
func AppendResultHead(dst []byte, id jsonrpc.ID) []byte {
	dst = jsonrpc.AppendResult(dst, id, nil)
	return dst[:len(dst)-1]
}

// AppendMembers appends each member of object that drop does not report, with a comma before each
// of them, and then a closing brace. A nil drop keeps all members.
func AppendMembers(dst, object []byte, drop func(key []byte) bool) []byte {
	comma := len(dst)
	dst, any := rawjson.AppendMembers(append(dst, ','), object, drop)
	if !any {
		dst = dst[:comma]
	}
	return append(dst, '}')
}

// OrEmptyObject returns raw, or "{}" if raw is empty.
func OrEmptyObject(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	return raw
}
