package bench

import (
	"context"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

var clientOptions = transport.ClientOptions{Revision: mcp.LatestRevision}

// silent is an Inbound that answers nothing.
type silent struct{}

func (silent) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.MethodNotFound(req.Method)
}
func (silent) Notify(mcp.Notification) {}
func (silent) Down(error)              {}
