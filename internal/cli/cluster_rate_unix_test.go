//go:build unix

package cli

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/mcp"
)

// Processes of two machines that have the same name do not use each other's rate.
func TestProcessesOfReplicasHaveTheirOwnRate(t *testing.T) {
	t.Parallel()
	cluster := natstest.Start(t, nil).ClientURL()
	var counts []int
	var clients []*client.Client
	for range 2 {
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas", "rateLimit": "60/h"}, "servers": {"everything": `+u.builtInEntry("everything", "")+`}}`)
		u.startDaemon("--cluster", cluster)
		u.awaitStates(map[string]hub.Status{"everything": hub.Ready})
		running := control.NewClient(control.Path(u.home, filepath.Join(u.home, "dowel")))
		c, err := client.Dial(t.Context(), running.Gateway(), &client.Options{Logger: slog.New(slog.DiscardHandler), HTTP: client.HTTP{
			Client: running.HTTP(), Header: func(context.Context) (http.Header, error) {
				return http.Header{control.HeaderClient: {"process 1234"}}, nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	for _, c := range clients {
		n := 0
		for ; n < 10; n++ {
			res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "everything__echo", Arguments: []byte(`{"message": "hello"}`)})
			if err != nil {
				t.Fatal(err)
			}
			if res.IsError {
				break
			}
		}
		counts = append(counts, n)
		time.Sleep(time.Second) // in which the replicas would tell each other
	}
	if counts[0] == 0 || counts[0] == 10 || counts[1] != counts[0] {
		t.Errorf("the processes have made %v calls", counts)
	}
}
