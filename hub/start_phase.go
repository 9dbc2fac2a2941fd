package hub

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/startphase"
)

// runnerSlots is how many package runners a hub starts at a time. An install uses a whole
// processor, so more of them at once would only make all servers late.
var runnerSlots = min(max(3, runtime.NumCPU()), 8)

// slotLimit is how long a runner keeps others from starting. A longer install mostly waits for the
// network.
const slotLimit = 2 * time.Minute

// takeRunnerSlot waits until the hub may start one more package runner, if the definition's target
// is one. The caller calls release when the server's own process runs or the start has failed; more
// calls have no effect.
func (u *Upstream) takeRunnerSlot(ctx context.Context, d Definition) (release func(), err error) {
	command, ok := commandOf(d.Target)
	if !ok || process.Command(command).Runner() == "" {
		return func() {}, nil
	}
	slots := u.hub.runnerSlots
	select {
	case slots <- struct{}{}:
	default:
		u.enterWait(ctx, fmt.Sprintf("it waits for its turn: %d package runners start at a time", cap(slots)))
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	release = sync.OnceFunc(func() { <-slots })
	time.AfterFunc(slotLimit, release)
	return release, nil
}

// enterWait gives the state Starting another cause.
func (u *Upstream) enterWait(ctx context.Context, cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s := u.state; s.Status == Starting && ctx.Err() == nil {
		s.Cause = cause
		u.setState(s)
	}
}

// enterPhase shows a phase of the current start in the state: an install, or a login for which the
// server's process waits. ctx is the context of the start; a phase that comes after its end is
// ignored.
func (u *Upstream) enterPhase(ctx context.Context, p startphase.Phase) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.state
	if ctx.Err() != nil || s.Status != Starting && s.Status != NeedsLogin {
		return
	}
	wasInstalling := !s.Installing.IsZero()
	s.Status, s.LoginURL, s.Installing = Starting, "", time.Time{}
	switch {
	case p.LoginURL != "":
		s.Status, s.LoginURL, s.Cause = NeedsLogin, p.LoginURL, "it waits until you have logged in at "+p.LoginURL
	case p.Runner != "" && wasInstalling:
		return // its activity changes too often to be an event
	case p.Runner != "":
		s.Installing, s.Cause = time.Now(), p.Runner+" is installing the server"
	case wasInstalling:
		s.Cause = "it is installed and starts"
	default:
		s.Cause = "it starts"
	}
	u.setState(s)
}
