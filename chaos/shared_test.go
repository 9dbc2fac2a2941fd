//go:build linux

package chaos

import (
	"context"
	"fmt"
	"os"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// Variables of the server that runs once for all replicas: where it records what it does, and the
// replica that has started it.
const (
	recorderVariable = "DOWEL_CHAOS_RECORDER"
	ownerVariable    = "DOWEL_CHAOS_OWNER"
)

func init() { roles["shared"] = runShared }

func runShared() {
	owner, to := os.Getenv(ownerVariable), recorder(os.Getenv(recorderVariable))
	by := fmt.Sprintf("%s/%d", owner, os.Getpid())
	s := server.New("shared", "1", nil)
	server.Tool(s, "work", "Works for a while.", func(ctx context.Context, j job) (string, error) {
		if err := to.send(record{Step: &history.Step{Job: j.Job, What: "start", Value: owner, By: by}}); err != nil {
			return "", err
		}
		return resultOf(j.Job), wait(ctx, j.pause())
	})
	if err := stdio.Serve(context.Background(), s); err != nil {
		fail(err)
	}
}
