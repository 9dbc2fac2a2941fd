//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// limits are generous: a busy machine does not reach them. With -strict they are what decision 30
// promises.
func limits() history.Limits {
	const lease = 6 * time.Second
	l := history.Limits{Orphan: opLimit, AfterKill: opLimit, Cancel: opLimit, Grace: 10 * time.Second, Recovery: 3 * time.Second, Notice: 30 * time.Second}
	if *strict {
		l.Orphan, l.AfterKill, l.Cancel = lease+5*time.Second, 5*time.Second, 5*time.Second
	}
	return l
}

const violationsShown = 5

// Replicas are killed while clients of both eras work: what the cluster has promised stays true. A
// failure prints the history near it.
func TestReplicasUnderFaults(t *testing.T) {
	chosen := *seed
	if chosen == 0 {
		chosen = uint64(time.Now().UnixNano())
	}
	for size := range strings.SplitSeq(*nodes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n != 1 && n != 3 {
			t.Fatalf("-nodes is %q, want 1, 3 or 1,3", *nodes)
		}
		t.Run(size, func(t *testing.T) { endure(t, chosen, n) })
	}
}

func endure(t *testing.T, seed uint64, n int) {
	repeat := fmt.Sprintf("go -C chaos test -count=1 -run TestReplicasUnderFaults . -seed %d -for %v -nodes %d -faults %s", seed, *lasting, n, *kinds)
	t.Logf("repeat with: %s", repeat)
	bounds := limits()
	if n > 1 {
		bounds.Election = electionTime
	}
	h := history.New(bounds)
	c := startCluster(t, h, n)
	faults := schedule(rand.New(rand.NewPCG(seed, 0)), strings.Split(*kinds, ","), n, *lasting)
	ctx, cancel := context.WithTimeout(t.Context(), *lasting+polltest.Limit)
	defer cancel()
	end := time.Now().Add(*lasting + time.Second)
	var working sync.WaitGroup
	for i := range 14 {
		name := fmt.Sprintf("listener%d", i)
		if i < 8 {
			name = fmt.Sprintf("%s%d", []string{"legacy", "modern"}[i%2], i)
		}
		working.Go(func() {
			c.work(ctx, name, rand.New(rand.NewPCG(seed, uint64(i+1))), func() bool { return time.Now().After(end) || ctx.Err() != nil })
		})
	}
	stopWatching := c.startWatching(ctx, rand.New(rand.NewPCG(seed, 100)))
	c.inflict(ctx, faults)
	working.Wait()
	stopWatching()
	report(t, h, c, repeat)
}

// startWatching lets clients of both eras listen to both servers, whose values change. The returned
// function ends that when each client knows all values, or should.
func (c *cluster) startWatching(ctx context.Context, random *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	changing, stopChanging := context.WithCancel(ctx)
	var watching, working sync.WaitGroup
	var all []*watcher
	for _, path := range []string{"/mcp/work", "/mcp/old"} {
		for _, era := range []string{"legacy", "modern"} {
			w := &watcher{cluster: c, name: era + "-watch" + path[len("/mcp"):], path: path, values: c.values, seen: map[string]int{}}
			all = append(all, w)
			if era == "legacy" {
				watching.Go(func() { w.watchLegacy(ctx) })
			} else {
				watching.Go(func() { w.watchModern(ctx) })
			}
		}
	}
	working.Go(func() { c.values.keepChanging(changing, random) })
	return func() {
		stopChanging()
		working.Wait()
		for limit := time.Now().Add(c.h.Limits.Notice + time.Second); time.Now().Before(limit); {
			if !slices.ContainsFunc(all, func(w *watcher) bool { return !w.hasAll() }) || wait(ctx, 50*time.Millisecond) != nil {
				break
			}
		}
		cancel()
		watching.Wait()
	}
}

// report checks the history and prints the broken promises.
func report(t *testing.T, h *history.History, c *cluster, repeat string) {
	t.Helper()
	t.Logf("%s; the operations of a killed replica ended within %v; %d calls of the shared server reached a process after a newer one", h.Summary(), h.LongestAfterKill().Round(time.Millisecond), h.Overlaps())
	t.Logf("errors:\n%s", h.Failures())
	found := h.Check()
	for i, v := range found {
		if i == violationsShown {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		t.Errorf("%v\n%s", v, h.Near(v))
	}
	if t.Failed() {
		for _, r := range c.processes() {
			t.Logf("the last output of %s:\n%s", r.name, r.output())
		}
		t.Logf("repeat with: %s", repeat)
		if path := os.Getenv("DOWEL_TEST_REPEAT"); path != "" {
			if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
				fmt.Fprintln(f, repeat)
				f.Close()
			}
		}
	}
}
