// Package down is dowel down: it ends the running daemon.
package down

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel down.
func NewCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the running dowel and its servers",
		Long: `End the dowel that dowel up has started, also with --detach, and its servers. Calls in flight may finish first, which takes a
few seconds at most. The exit code is 0 if no dowel is running.

A dowel that a client started with dowel up --stdio ends with its client, not with this command. A service starts again at the
next login: dowel service remove.`,
		Example: `  dowel down
  dowel down --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return runDown(cmd.Context(), f)
		},
	}
}

// Result is the JSON output.
type Result struct {
	PID int `json:"pid,omitzero"` // of the dowel that has ended; 0 if none was running
}

func runDown(ctx context.Context, f *factory.Factory) error {
	running := factory.RunningDaemon()
	s, err := running.Status(ctx)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return writeResult(f, Result{}, "No dowel is running.")
	case err != nil:
		return exit.ConnectError{Server: "the running dowel", Err: err}
	}
	if err := running.RequestStop(ctx); err != nil && !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	if err := awaitEnd(ctx, running, s.PID); err != nil {
		return err
	}
	return writeResult(f, Result{s.PID}, fmt.Sprintf("dowel, process %d, has ended.", s.PID))
}

func writeResult(f *factory.Factory, r Result, note string) error {
	if f.JSON {
		return f.WriteValue(r)
	}
	f.WriteNote("%s", note)
	return nil
}

// endLimit is longer than a dowel takes to end calls in flight and servers that ignore signals.
const endLimit = time.Minute

// awaitEnd waits until the process with the given id has released the control socket.
func awaitEnd(ctx context.Context, running *control.Client, pid int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endLimit, fmt.Errorf("dowel, process %d, has not ended within %v: end it with kill %d", pid, endLimit, pid))
	defer cancel()
	_, err := running.AwaitStatus(ctx, func(s control.Status, err error) bool {
		return errors.Is(err, control.ErrNotRunning) || err == nil && s.PID != pid
	})
	return err
}
