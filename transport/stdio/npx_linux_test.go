package stdio

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/npmtest"
	"github.com/dowel-mcp/dowel/internal/npxcache"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/transport"
)

// An install of npx that is interrupted at any moment leaves no broken cache: later runs find
// either no install or a complete one.
func TestInterruptedNpx(t *testing.T) {
	const (
		installs = 20
		enough   = 5 // on a machine that is too slow for all of them within bound
		bound    = 45 * time.Second
		seed     = 16
	)
	random := rand.New(rand.NewPCG(seed, seed))
	rollbacks := 0
	began := time.Now()
	for i := range installs {
		if i >= enough && time.Since(began) > bound {
			break
		}
		if interruptInstall(t, 1+random.IntN(16), time.Duration(random.Int64N(int64(1500*time.Millisecond)))) {
			rollbacks++
		}
	}
	t.Logf("%d installs were interrupted", rollbacks)
	if rollbacks == 0 {
		t.Error("no install was interrupted")
	}
}

// interruptInstall interrupts an install some time after a request to the registry, and checks the
// cache. It reports whether npx was installing then.
func interruptInstall(t *testing.T, request int, after time.Duration) (installing bool) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var timer *time.Timer
	var once sync.Once
	registry := npmtest.Start(t, npmtest.Options{Parts: 6, Files: 150, OnRequest: func(n int) {
		if n >= request {
			once.Do(func() { timer = time.AfterFunc(after, func() { cancel(errInterrupted) }) })
		}
	}})
	dir := t.TempDir()
	env := registry.Env(dir)
	c := Command{Path: "npx", Args: []string{"-y", npmtest.Package}, Env: env}
	tr, err := c.Dial(ctx, &inbound{}, transport.ClientOptions{Logger: discard, Verdicts: &transport.Verdicts{}})
	switch {
	case err == nil:
		tr.Close()
	case !errors.Is(err, errInterrupted):
		t.Fatal(err)
	}
	installing = process.IsRollback(err)
	process.AwaitEnd(err)
	if timer != nil {
		timer.Stop()
	}
	hash, _ := npxcache.Hash([]string{"npx", "-y", npmtest.Package})
	folder := filepath.Join(env["npm_config_cache"], "_npx", hash)
	if _, err := os.Stat(folder); err != nil {
		return installing
	}
	server := exec.Command("node", filepath.Join(folder, "node_modules", npmtest.Package, "server.js"))
	if out, err := server.CombinedOutput(); err != nil || !npxcache.IsComplete(folder) {
		t.Errorf("interrupted %v after request %d, the cache is broken: %v\n%s", after, request, err, out)
	}
	return installing
}

var errInterrupted = errors.New("the test interrupts it")
