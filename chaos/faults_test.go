//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// schedule returns the faults of a seed. The same seed gives the same faults.
func schedule(random *rand.Rand, kinds []string, nodes int, until time.Duration) (all []fault) {
	for at := time.Duration(0); ; {
		f := fault{kind: kinds[random.IntN(len(kinds))], which: random.IntN(3), after: 300*time.Millisecond + time.Duration(random.Int64N(int64(1500*time.Millisecond))),
			lasts: 100*time.Millisecond + time.Duration(random.Int64N(int64(2500*time.Millisecond))), chance: 0.2 + 0.8*random.Float64()}
		if f.kind == history.KillStore {
			f.which %= nodes
		}
		if at += f.after; at > until {
			return all
		}
		all = append(all, f)
	}
}

// inflict does what a schedule says and heals it at the end of each fault. Faults overlap, but a process or a
// store has one fault at a time, and one replica stays without a fault. After the end of a NATS server the others
// get the time to elect a leader.
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
		room := !busy[target] && (target[0] != 'r' || len(busy) < 2)
		if f.kind == history.KillStore {
			if room = room && time.Now().After(elected); room {
				elected = time.Now().Add(f.lasts + 12*time.Second)
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

// targetOf names what a fault is done to.
func (c *cluster) targetOf(f fault) string {
	switch f.kind {
	case history.CutCalls, history.SlowCalls:
		return "front"
	case history.KillStore:
		return fmt.Sprintf("n%d", f.which+1)
	}
	return c.replicas[f.which].name
}

// suffer begins a fault, waits, and heals it.
func (c *cluster) suffer(ctx context.Context, f fault) {
	r := c.replicas[f.which]
	slow := func(all []*relay, most time.Duration) {
		for _, one := range all {
			one.delay.Store(int64(most) / 10 * int64(1+f.which))
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
	case history.CutCalls:
		c.front.cut(f.chance, rand.New(rand.NewPCG(uint64(f.lasts), 0)))
	case history.SlowCalls:
		slow([]*relay{c.front}, time.Second/2)
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
