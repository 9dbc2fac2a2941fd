package hub

import "github.com/dowel-mcp/dowel/internal/polltest"

// A machine with other work may take longer than the usual limit for a list of 1,000 pages.
func init() { listTimeout = polltest.Limit }
