//go:build linux

package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/programtest"
)

// roleVariable makes the test binary a NATS server. See roles.
const roleVariable = "DOWEL_CHAOS_ROLE"

var roles = map[string]func(){}

// dowelPath is the program under test.
var dowelPath string

var (
	seed    = flag.Uint64("seed", 0, "the random numbers of the schedule; 0 takes others each time")
	lasting = flag.Duration("for", 30*time.Second, "how long faults happen, for each number of NATS servers")
	nodes   = flag.String("nodes", "1,3", "the numbers of NATS servers, with a comma between")
	kinds   = flag.String("faults", "kill,kill,stop,freeze,cut,slow,cut-store,slow-store,kill-store", "the kinds of faults, with a comma between: kill, stop, freeze, cut, slow, cut-store, slow-store, kill-store")
	strict  = flag.Bool("strict", false, "also check how soon operations end; only on a machine that does nothing else")
)

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		role()
		return
	}
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "dowel-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if dowelPath, err = programtest.Build(folder, ".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
