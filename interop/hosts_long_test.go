//go:build long

package interop

import "testing"

// The client libraries that are too large to install for each run.
func TestLargeHosts(t *testing.T) { testHosts(t, "large", []string{"mastra", "mcp-use"}) }
