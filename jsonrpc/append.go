package jsonrpc

import (
	"encoding/json"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

const messageHead = `{"jsonrpc":"2.0"`

// AppendRequest appends a request to dst. params is an object or nil.
func AppendRequest(dst []byte, id ID, method string, params json.RawMessage) []byte {
	dst = append(dst, messageHead+`,"id":`...)
	dst = append(id.Append(dst), `,"method":`...)
	dst = rawjson.AppendString(dst, method)
	return appendParams(dst, params)
}

// AppendNotification appends a notification to dst. params is an object or nil.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	dst = append(dst, messageHead+`,"method":`...)
	dst = rawjson.AppendString(dst, method)
	return appendParams(dst, params)
}

func appendParams(dst []byte, params json.RawMessage) []byte {
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response to dst. result is an object.
func AppendResult(dst []byte, id ID, result json.RawMessage) []byte {
	dst = append(dst, messageHead+`,"id":`...)
	dst = append(id.Append(dst), `,"result":`...)
	return append(append(dst, result...), '}')
}

// AppendError appends an error response to dst. A zero id is left out.
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = append(dst, messageHead...)
	if !id.IsZero() {
		dst = append(dst, `,"id":`...)
		dst = id.Append(dst)
	}
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, "}}"...)
}
