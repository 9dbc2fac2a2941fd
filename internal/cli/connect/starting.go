package connect

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// quietStart is how long a start may take before it is shown. Most servers start faster.
const quietStart = time.Second

// showStart shows on a terminal that the server of t is starting, and for how long. The caller calls
// stop when it has started or failed.
func (conn *Connection) showStart(ctx context.Context, t Target) (stop func()) {
	command, ok := t.Dial.(stdio.Command)
	if !ok || !conn.Stderr.IsTerminal() || conn.JSON {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() {
		began := time.Now()
		wait := time.NewTimer(quietStart)
		defer wait.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
			}
			conn.Stderr.SetStatus(describeStart(command, time.Since(began)))
			wait.Reset(quietStart)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		shown.Wait()
		conn.Stderr.SetStatus("")
	})
}

// describeStart describes a start that is in progress.
func describeStart(command stdio.Command, since time.Duration) string {
	words := term.Line(strings.Join(append([]string{command.Path}, command.Args...), " "))
	const most = 48
	return fmt.Sprintf("starting %s, %s", term.Shorten(words, most), display.Duration(since.Truncate(time.Second)))
}
