package everything

import (
	"context"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/server"
)

// addLong adds tools that take some time: they report progress, log, and can be cancelled.
func addLong(s *server.Server) {
	server.Tool(s, "slow", "Takes the given number of seconds and reports progress. The call can be cancelled.", runSlowly, hints)
	server.Tool(s, "test_tool_with_progress", "Reports progress three times.", withProgress, hints)
	server.Tool(s, "test_tool_with_logging", "Logs three messages.", withLogging, hints)
	server.Tool(s, "test_logging_tool", "Logs a message, which only clients that ask for log messages receive.", func(ctx context.Context, _ none) (string, error) {
		server.Log(ctx).Info("Logged by test_logging_tool", "answer", 42, "logger", "everything")
		return "Logged.", nil
	}, hints)
	server.Tool(s, "test_reconnection", "Closes the connection, if the client can reconnect, and returns a result after a second.", testReconnection, hints)
}

type slowIn struct {
	Seconds float64 `json:"seconds,omitzero" doc:"The duration of the call" default:"5" minimum:"0" maximum:"600"`
}

func runSlowly(ctx context.Context, in slowIn) (string, error) {
	const steps = 20
	total := time.Duration(in.Seconds * float64(time.Second))
	for i := range steps {
		server.Progress(ctx, float64(i), steps, fmt.Sprintf("step %d of %d", i+1, steps))
		if err := timeout.Sleep(ctx, total/steps); err != nil {
			return "", err
		}
	}
	server.Progress(ctx, steps, steps, "done")
	return fmt.Sprintf("Took %v.", total), nil
}

func withProgress(ctx context.Context, _ none) (string, error) {
	server.Progress(ctx, 0, 100, "begun")
	if err := timeout.Sleep(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	server.Progress(ctx, 50, 100, "half way")
	if err := timeout.Sleep(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	server.Progress(ctx, 100, 100, "done")
	return "Progress was reported.", nil
}

func withLogging(ctx context.Context, _ none) (string, error) {
	log := server.Log(ctx)
	log.Info("Tool execution started")
	if err := timeout.Sleep(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	log.Info("Tool processing data")
	if err := timeout.Sleep(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	log.Info("Tool execution completed")
	return "Messages were logged.", nil
}

// testReconnection closes the connection of its call, so that the client must reconnect for the
// result.
func testReconnection(ctx context.Context, _ none) (string, error) {
	server.Disconnect(ctx) // keeps the connection if the client cannot reconnect
	if err := timeout.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	return "The result came through.", nil
}
