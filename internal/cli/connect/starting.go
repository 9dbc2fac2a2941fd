package connect

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// quietStart is how long a start may take before it is shown. Most servers start faster.
const quietStart = time.Second

// startShow is what is shown of a start.
type startShow struct {
	conn    *Connection
	command stdio.Command

	mu    sync.Mutex
	phase startphase.Phase
	since time.Time // when the phase began
}

// showStart shows on a terminal what the server of t is doing until it has started, and for how
// long. Phases of the start are passed to enterPhase. The address of a login is also written
// without a terminal. The caller calls stop when the server has started or failed.
func (conn *Connection) showStart(ctx context.Context, t Target) (enterPhase func(startphase.Phase), stop func()) {
	command, ok := t.Dial.(stdio.Command)
	show := &startShow{conn: conn, command: command, since: time.Now()}
	if !ok || !conn.Stderr.IsTerminal() || conn.JSON {
		return show.enterPhase, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() { show.refreshStatus(ctx) })
	return show.enterPhase, sync.OnceFunc(func() {
		cancel()
		shown.Wait()
		conn.Stderr.SetStatus("")
	})
}

// enterPhase notes a phase of the start.
func (s *startShow) enterPhase(p startphase.Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase.LoginURL != p.LoginURL && p.LoginURL != "" {
		s.conn.Warn("the server waits until you have logged in at %s", p.LoginURL)
	}
	if s.phase.Runner != p.Runner || s.phase.LoginURL != p.LoginURL {
		s.since = time.Now()
	}
	s.phase = p
}

// refreshStatus shows the start until ctx ends.
func (s *startShow) refreshStatus(ctx context.Context) {
	wait := time.NewTimer(quietStart)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		s.conn.Stderr.SetStatus(s.describeStart())
		wait.Reset(quietStart)
	}
}

// describeStart describes the start in a line.
func (s *startShow) describeStart() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := display.Seconds(time.Since(s.since))
	words := term.Line(strings.Join(append([]string{s.command.Path}, s.command.Args...), " "))
	const most = 48
	switch {
	case s.phase.LoginURL != "":
		return "waiting for your login, " + since
	case s.phase.Runner != "":
		return fmt.Sprintf("installing, %s: %s", since, term.Shorten(words, most))
	}
	return fmt.Sprintf("starting %s, %s", term.Shorten(words, most), display.Duration(time.Since(s.since).Truncate(time.Second)))
}
