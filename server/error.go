package server

import (
	"context"
	"errors"
	"io/fs"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const codeInternal = jsonrpc.CodeInternal

// passThroughError returns the error of a handler that reaches the edge as it is, in any method: the end of the request, a protocol
// error, a lack of capabilities. It returns nil for any other.
func passThroughError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*mcp.CapabilityError](err); ok {
		return e
	}
	return nil
}

// handlerError is the error of anything but a tool. The edge gives it a safe text, so its own goes to the log.
func (c *call) handlerError(err error) error {
	if passing := passThroughError(c.Context, err); passing != nil {
		return passing
	}
	if c.req.Method == mcp.MethodReadResource && errors.Is(err, fs.ErrNotExist) {
		return mcp.ResourceNotFound(string(c.params.name))
	}
	c.server.opts.Logger.WarnContext(c.Context, "a handler failed", "method", c.req.Method, "name", string(c.params.name), "err", err)
	return err
}
