package websocket_test

import (
	"testing"

	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }
