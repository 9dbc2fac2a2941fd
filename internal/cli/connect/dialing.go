package connect

import (
	"context"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/term"
)

// IsWaitLimited reports whether the command line sets --connect-timeout. The flag then bounds an
// install too; its default does not.
func (conn *Connection) IsWaitLimited() bool {
	return conn.flags != nil && conn.flags.Changed("connect-timeout") && conn.ConnectTimeout > 0
}

// dial connects to a target within --connect-timeout, and shows what a start is waiting for.
func (conn *Connection) dial(ctx context.Context, t Target, o client.Options) (*client.Client, error) {
	if conn.IsWaitLimited() {
		limit := &client.TimeoutError{Kind: client.TimeoutConnect, After: conn.ConnectTimeout}
		bounded, cancel := context.WithTimeoutCause(ctx, conn.ConnectTimeout, limit)
		defer cancel()
		ctx = bounded
	}
	phase, stop := conn.showStart(ctx, t)
	defer stop()
	return client.Dial(startphase.WithObserver(ctx, phase), t.Dial, &o)
}

// AwaitInstalls waits until no server of a hub is being installed, or ctx ends. show is called
// about once a second with the work in progress, and with "" at the end.
func AwaitInstalls(ctx context.Context, h *hub.Hub, show func(string)) {
	defer show("")
	for {
		doing := describeInstalls(h)
		if doing == "" {
			return
		}
		show(doing)
		second, cancel := context.WithTimeout(ctx, time.Second)
		h.Settle(second)
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// describeInstalls names the longest install of a hub, and counts the others.
func describeInstalls(h *hub.Hub) string {
	var first *hub.Upstream
	var since time.Time
	count := 0
	for _, u := range h.Upstreams() {
		s := u.State()
		if s.Installing.IsZero() {
			continue
		}
		if count++; first == nil || s.Installing.Before(since) {
			first, since = u, s.Installing
		}
	}
	switch count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("installing %s, %s", term.Line(first.Name()), display.Seconds(time.Since(since)))
	}
	return fmt.Sprintf("installing %s and %d more, %s", term.Line(first.Name()), count-1, display.Seconds(time.Since(since)))
}
