package everything

import (
	"context"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// addLong adds tools that take their time: they report progress, log, and can be cancelled.
func addLong(s *server.Server) {
	server.Tool(s, "slow", "Takes as many seconds as it is told to, reports progress, and can be cancelled.", runSlowly, hints)
	server.Tool(s, "test_tool_with_progress", "Reports progress three times.", withProgress, hints)
	server.Tool(s, "test_tool_with_logging", "Logs three messages.", withLogging, hints)
	server.Tool(s, "test_logging_tool", "Logs, which is heard only by who asks for logs.", func(ctx context.Context, _ none) (string, error) {
		server.Log(ctx).Info("Logged by test_logging_tool", "answer", 42, server.LoggerKey, "everything")
		return "Logged.", nil
	}, hints)
	server.Tool(s, "test_reconnection", "Ends the connection where the client can come back, and takes a second.", testReconnection, hints)
}

type slowIn struct {
	Seconds float64 `json:"seconds,omitzero" doc:"How long to take" default:"5" minimum:"0" maximum:"600"`
}

func runSlowly(ctx context.Context, in slowIn) (string, error) {
	const steps = 20
	total := time.Duration(in.Seconds * float64(time.Second))
	for i := range steps {
		server.Progress(ctx, float64(i), steps, fmt.Sprintf("step %d of %d", i+1, steps))
		if err := pause(ctx, total/steps); err != nil {
			return "", err
		}
	}
	server.Progress(ctx, steps, steps, "done")
	return fmt.Sprintf("Took %v.", total), nil
}

func withProgress(ctx context.Context, _ none) (string, error) {
	server.Progress(ctx, 0, 100, "begun")
	if err := pause(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	server.Progress(ctx, 50, 100, "half way")
	if err := pause(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	server.Progress(ctx, 100, 100, "done")
	return "Progress was reported.", nil
}

func withLogging(ctx context.Context, _ none) (string, error) {
	log := server.Log(ctx)
	log.Info("Tool execution started")
	if err := pause(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	log.Info("Tool processing data")
	if err := pause(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	log.Info("Tool execution completed")
	return "Messages were logged.", nil
}

// testReconnection should cut the stream of its own call, so that the client resumes it. A handler
// cannot reach the stream, which belongs to the transport. So it only takes long enough for a proxy
// to cut it.
func testReconnection(ctx context.Context, _ none) (string, error) {
	server.Disconnect(ctx) // where the client does not come back, the connection stays
	if err := pause(ctx, time.Second); err != nil {
		return "", err
	}
	return "The result came through.", nil
}
