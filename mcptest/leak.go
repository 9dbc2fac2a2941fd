package mcptest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests and fails if a goroutine is left behind. Call it from TestMain:
//
//	func TestMain(m *testing.M) { mcptest.Main(m) }
func Main(m *testing.M) { goleak.VerifyTestMain(m) }
