//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
)

// A fault is one entry of the schedule.
type fault struct {
	kind   string
	which  int           // of the replicas or nodes
	after  time.Duration // since the one before
	lasts  time.Duration
	chance float64 // of each connection to be cut
}

// After calmEvery faults, of which the last one kills a process, the cluster is left alone: long
// enough for what it promises to be due. Most faults before that kill have ended. One of the
// calmEvery kills a NATS server.
const (
	calmEvery   = 12
	calm        = 16 * time.Second
	beforeKill  = leaseLife + 2*time.Second
	storeKilled = 2 // the number of that fault
)

// schedule returns the faults of a seed. The same seed gives the same faults.
func schedule(random *rand.Rand, kinds []string, nodes int, until time.Duration) (all []fault) {
	for at := time.Duration(0); ; {
		f := fault{kind: kinds[random.IntN(len(kinds))], which: random.IntN(6), after: 300*time.Millisecond + time.Duration(random.Int64N(int64(1500*time.Millisecond))),
			lasts: 100*time.Millisecond + time.Duration(random.Int64N(int64(2500*time.Millisecond))), chance: 0.2 + 0.8*random.Float64()}
		switch n := len(all) % calmEvery; {
		case n == 0 && len(all) > 0:
			f.after = calm
		case n == calmEvery-1 && slices.Contains(kinds, history.Kill):
			f.kind, f.after = history.Kill, beforeKill
		case n == storeKilled && slices.Contains(kinds, history.KillStore):
			f.kind = history.KillStore
		}
		if f.kind == history.KillStore {
			f.which %= nodes
		}
		if at += f.after; at > until {
			return all
		}
		all = append(all, f)
	}
}

// inflict does what a schedule says and heals it at the end of each fault. Faults overlap, but a
// process or a store has one fault at a time, and of each three one stays without a fault. After
// the end of a NATS server the others get the time to elect a leader.
func (c *cluster) inflict(ctx context.Context, faults []fault) {
	var healing sync.WaitGroup
	defer healing.Wait()
	var mu sync.Mutex
	busy := map[string]bool{}
	var elected time.Time // when the NATS servers may have a leader again
	for _, f := range faults {
		if wait(ctx, f.after) != nil {
			return
		}
		target := c.targetOf(f)
		mu.Lock()
		room := !busy[target] && countOf(busy, target[:1]) < 2
		if f.kind == history.KillStore {
			if room = room && time.Now().After(elected); room {
				elected = time.Now().Add(f.lasts + electionTime)
			}
		}
		if room {
			busy[target] = true
		}
		mu.Unlock()
		if !room {
			continue
		}
		healing.Go(func() {
			recorded := c.h.BeginFault(f.kind, target)
			c.suffer(ctx, f)
			c.h.EndFault(recorded)
			mu.Lock()
			delete(busy, target)
			mu.Unlock()
		})
	}
}

// leaseLife is how long a replica is waited for.
const leaseLife = 6 * time.Second

// electionTime is how long NATS servers may take to elect a leader.
const electionTime = 12 * time.Second

// countOf returns how many targets of a kind have a fault.
func countOf(busy map[string]bool, kind string) (n int) {
	for target := range busy {
		if target[:1] == kind {
			n++
		}
	}
	return n
}

// processes returns the replicas of both kinds.
func (c *cluster) processes() []*replica { return slices.Concat(c.replicas, c.libraries) }

// targetOf names what a fault is done to.
func (c *cluster) targetOf(f fault) string {
	switch f.kind {
	case history.CutCalls, history.SlowCalls:
		return [...]string{"front", "gate"}[f.which%2]
	case history.KillStore:
		return fmt.Sprintf("n%d", f.which+1)
	}
	return c.processes()[f.which].name
}

// suffer begins a fault, waits, and heals it.
func (c *cluster) suffer(ctx context.Context, f fault) {
	r := c.processes()[f.which]
	front := []*relay{c.front, c.gate}[f.which%2]
	slow := func(all []*relay, most time.Duration) {
		for _, one := range all {
			one.delay.Store(int64(most) / 20 * int64(1+f.which))
		}
		_ = wait(ctx, f.lasts)
		for _, one := range all {
			one.delay.Store(0)
		}
	}
	switch f.kind {
	case history.Kill:
		r.kill()
		_ = wait(ctx, f.lasts)
		r.start()
	case history.Stop:
		r.signal(syscall.SIGSTOP)
		_ = wait(ctx, f.lasts)
		r.signal(syscall.SIGCONT)
	case history.Freeze:
		r.signal(syscall.SIGSTOP)
		_ = wait(ctx, leaseLife+time.Second+f.lasts/2)
		r.signal(syscall.SIGCONT)
	case history.CutCalls:
		front.cut(f.chance, rand.New(rand.NewPCG(uint64(f.lasts), 0)))
	case history.SlowCalls:
		slow([]*relay{front}, time.Second/2)
	case history.SlowStore:
		slow(r.links, time.Second/2)
	case history.CutStore:
		for _, one := range r.links {
			one.refuses.Store(true)
			one.cut(1, nil)
		}
		_ = wait(ctx, f.lasts)
		for _, one := range r.links {
			one.refuses.Store(false)
		}
	case history.KillStore:
		c.nodes[f.which].kill()
		_ = wait(ctx, f.lasts)
		c.nodes[f.which].start()
	}
}
