package sessionlog

import (
	"context"
	"os"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// attachInterval is the time between two attempts to tell a running dowel of the conversation.
const attachInterval = 3 * time.Second

// Attach tells the running dowel, and each one that starts later, that this process continues a
// session, until ctx ends. program is its name, such as dowel chat.
func Attach(ctx context.Context, program, session string) {
	a := control.AgentProgram{Session: session, Program: program, PID: os.Getpid()}
	running := factory.RunningDaemon()
	for ctx.Err() == nil {
		_ = running.AttachAgent(ctx, a) // no dowel runs, or it has ended: it is tried again
		_ = timeout.Sleep(ctx, attachInterval)
	}
}
