//go:build linux

package attack

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

var (
	sharedMu     sync.Mutex
	sharedVictim *victim // runs until the end of all tests; nil before the first use
)

// sharedVictimOf returns a victim with a running dowel that many tests share. They leave it as it
// was.
func sharedVictimOf(t *testing.T) *victim {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if sharedVictim == nil {
		folder, err := os.MkdirTemp("", "dowel-attack-home-")
		if err != nil {
			t.Fatal(err)
		}
		v := &victim{t: t, home: folder + "/home", project: folder}
		v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s, "kv": %s, "asker": %s},
			"gateway": {"audit": %q, "clients": {"ci": {"token": "token-of-ci"}, "other": {"token": "token-of-other"}}}}`,
			builtIn("everything"), builtIn("kv", "memory=true"), hostile(t, "server", "asks once"), v.home+"/audit"))
		v.start()
		sharedVictim = v
	}
	return &victim{t: t, home: sharedVictim.home, project: sharedVictim.project, url: sharedVictim.url, token: sharedVictim.token}
}

// stopShared ends the shared dowel and returns the exit code of the tests.
func stopShared(code int) int {
	if sharedVictim == nil {
		return code
	}
	_ = sharedVictim.cmd.Process.Signal(os.Interrupt)
	if err := sharedVictim.cmd.Wait(); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: the shared dowel: %v\n%.4000s\n", err, sharedVictim.output())
		code = max(code, 1)
	}
	os.RemoveAll(sharedVictim.project)
	return code
}
