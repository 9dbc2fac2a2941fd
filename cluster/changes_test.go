package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

const watched = "test://watched"

// changing adds a resource that the tool touch changes, and the tool grow, which adds a tool. Each
// tool returns the name of its replica.
func changing(r *replicaServer) {
	server.Resource(r.server, watched, "", func(context.Context, struct{}) (string, error) { return "", nil }, server.ResourceOptions{Name: "watched"})
	server.Tool(r.server, "touch", "", func(context.Context, struct{}) (string, error) {
		r.server.Updated(watched)
		return r.name, nil
	})
	grown := 0
	server.Tool(r.server, "grow", "", func(context.Context, struct{}) (string, error) {
		grown++
		item, err := server.NewTool(fmt.Sprintf("new-%d", grown), "", func(context.Context, struct{}) (string, error) { return "", nil })
		return r.name, errors.Join(err, r.server.Add(item))
	})
}

// await reads changes until one has the method. A gap means that changes may have been missed, and
// is as good.
func await(t *testing.T, next func() (client.Change, error, bool), method string) {
	t.Helper()
	for {
		change, err, ok := next()
		if err != nil || !ok {
			t.Fatalf("%v, %v", err, ok)
		}
		if change.Method == method || change.Gap {
			return
		}
	}
}

// A change that any replica makes reaches a client, at whichever its subscription is.
func TestChanges(t *testing.T) {
	t.Parallel()
	_, front := startReplicas(t, changing)
	inEras(t, front, func(t *testing.T, c *client.Client) {
		watch, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{watched}})
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(watch.Changes())
		defer stop()
		makers := map[string]bool{}
		for len(makers) < 3 {
			makers[call(t, c, "touch")] = true
			await(t, next, mcp.NotificationResourceUpdated)
			makers[call(t, c, "grow")] = true
			await(t, next, mcp.NotificationToolsChanged)
		}
	})
}

// A legacy client whose stream is lost hears of the changes in between at another replica.
func TestChangesAfterLostStream(t *testing.T) {
	t.Parallel()
	_, front := startReplicas(t, changing)
	c := front.dial(t, mcp.Revision20251125)
	watch, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{watched}})
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(watch.Changes())
	defer stop()
	for range 4 {
		front.cut("GET")
		call(t, c, "touch")
		await(t, next, mcp.NotificationResourceUpdated)
	}
	polltest.Until(t, "the stream is resumed", func() bool { return len(front.resumptions()) > 0 })
}
