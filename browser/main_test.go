//go:build linux

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
	dowelPath = filepath.Join(folder, "dowel")
	build := exec.Command("go", "build", "-o", dowelPath, "./cmd/dowel")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building dowel: %v\n%s", err, output)
		return 1
	}
	defer stopBrowser()
	return m.Run()
}
