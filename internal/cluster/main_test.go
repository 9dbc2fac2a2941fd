package cluster_test

import (
	"log/slog"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
)

// open joins a cluster until the test ends.
func open(t *testing.T, url string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// openTwo joins one cluster as two replicas.
func openTwo(t *testing.T) (one, two *cluster.Cluster) {
	url := natstest.Start(t, nil).ClientURL()
	return open(t, url), open(t, url)
}
