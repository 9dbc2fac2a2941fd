package streamable

import (
	"net/http"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// httpStatus is that of a modern response that is one document (basic/index, basic/transports/streamable-http). Where the
// specification names none it is 200: the error is the handler's, and the exchange went well.
func httpStatus(e *mcp.Error) int {
	if e == nil {
		return http.StatusOK
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
