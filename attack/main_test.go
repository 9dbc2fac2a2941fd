//go:build linux

package attack

import (
	"fmt"
	"os"
	"testing"

	"github.com/dowel-mcp/dowel/internal/programtest"
)

// roleVariable makes the test binary a hostile program: a server or another user. See roles.
const roleVariable = "DOWEL_ATTACK_ROLE"

var roles = map[string]func(){}

// dowelPath is the program under attack. Other users can read and run it.
var dowelPath string

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		role()
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "dowel-attack-")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if dowelPath, err = programtest.Build(folder, ".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return stopShared(m.Run())
}

// isLong reports whether the attacks run in their long form, as in make attack-long.
func isLong() bool { return os.Getenv("DOWEL_ATTACK") == "whole" }

// repeatCount returns the number of repetitions of an attack: bounded, or long in the long form.
func repeatCount(bounded, long int) int {
	if isLong() {
		return long
	}
	return bounded
}
