package hub

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// The loss of the owner of a shared server counts as no failure of the server. An attempt follows
// at once, unless the connection was lost as soon as it was there.
func TestLossOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, quiet := replicatest.New(), slog.New(slog.DiscardHandler)
		pool, err := sharedserver.Join(sharedserver.Options{Network: n, Values: n, Logger: quiet, Redial: func(string) bool { return true },
			Serve: func(string) (mcp.Handler, error) { return nil, sharedserver.ErrStarting }})
		if err != nil {
			t.Fatal(err)
		}
		n.SetCut(true)
		_, lost := pool.Target("up", nil).Dial(t.Context(), nil, transport.ClientOptions{})
		if !sharedserver.HasNoOwner(lost) {
			t.Fatal(lost)
		}
		h := New(&Options{Logger: quiet})
		u := newUpstream(h, Definition{Name: "up"})
		for range 5 {
			u.setState(State{Status: Ready, Attempt: u.state.Attempt})
			time.Sleep(time.Second)
			u.enterFailure(lost, nil, false)
			if u.state.Status != Starting || u.state.Attempt != 1 {
				t.Errorf("after a second: %s, attempt %d", u.state.Status, u.state.Attempt)
			}
		}
		u.setState(State{Status: Ready, Attempt: u.state.Attempt})
		u.enterFailure(lost, nil, false)
		if wait := time.Until(u.state.Next); u.state.Status != Failed || wait <= 0 || wait > h.opts.MinBackoff {
			t.Errorf("after no time: %s, %v", u.state.Status, wait)
		}
		h.Close()
		pool.Close()
	})
}
