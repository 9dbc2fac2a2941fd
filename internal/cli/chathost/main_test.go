package chathost

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
