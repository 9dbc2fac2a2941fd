//go:build linux

package browser

import (
	"fmt"
	"os"
	"testing"

	"github.com/dowel-mcp/dowel/internal/programtest"
)

// roleVariable makes the test binary a server of dowel; see roles.
const roleVariable = "DOWEL_BROWSER_ROLE"

// dowelPath is the program under test, axePath the script of axe-core.
var dowelPath string

const axePath = "node_modules/axe-core/axe.min.js"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		role()
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	if _, err := os.Stat(axePath); err != nil {
		fmt.Fprintln(os.Stderr, "axe-core is missing: run make browser-deps")
		return 1
	}
	folder, err := os.MkdirTemp("", "dowel-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if dowelPath, err = programtest.Build(folder, ".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopBrowser()
	return m.Run()
}
