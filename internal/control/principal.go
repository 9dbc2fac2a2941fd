package control

import (
	"net/http"

	"github.com/dowel-mcp/dowel/mcp"
)

// HeaderClient is the header field in which a process says for which client it speaks to the running dowel's MCP endpoint.
const HeaderClient = "Dowel-Client"

// Principal is who a request says it comes from, by [HeaderClient]: whoever reaches the endpoint of [Handler] is the user, and
// is believed.
func Principal(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.Header.Get(HeaderClient)} }
