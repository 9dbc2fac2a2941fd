package kv

import (
	"fmt"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// A client of one process is told about changes made through another process.
func TestServersShareARedis(t *testing.T) {
	prefix := fmt.Sprintf("dowel:test:servers:%d:", time.Now().UnixNano())
	connect := func() *client.Client {
		s, err := New(openRedis(t, prefix))
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, s, client.Options{})
		t.Cleanup(func() {
			c.Close()
			s.Close()
		})
		return c
	}
	here, there := connect(), connect()
	watch, err := here.Watch(t.Context(), mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: []string{URI("a")}})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	seen := map[string]bool{}
	call(t, there, "set", args{"key": "a", "value": "1"})
	for change, err := range watch.Changes() {
		if err != nil {
			t.Fatal(err)
		}
		if seen[change.Method+" "+change.URI] = true; len(seen) == 2 {
			break
		}
	}
	if !seen[mcp.NotificationResourcesChanged+" "] || !seen[mcp.NotificationResourceUpdated+" kv://a"] {
		t.Errorf("saw %v", seen)
	}
	if got := call(t, here, "get", args{"key": "a"}); got != "1" {
		t.Errorf("got %q", got)
	}
}
