package server_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A replica that cannot read the store when a task changes at another one tells its clients later.
func TestTaskChangesWhileStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, _ := sharedKeys(t)
		memory, gone := new(tasks.Memory), new(atomic.Value)
		gone.Store("")
		var stores []*replicaStore
		var servers []*server.Server
		for i := range 2 {
			store := &replicaStore{Memory: memory, name: fmt.Sprint(i), gone: gone}
			s := server.New("replica", "1", &server.Options{Keys: keys, Tasks: store})
			defer s.Close()
			server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, must)
			stores, servers = append(stores, store), append(servers, s)
		}
		var ids []string
		for range 2 {
			ids = append(ids, beginTask(t, servers[0], as("ann", taskRequest("tools/call", `{"name":"work","arguments":{}}`))).TaskID)
		}
		p := &peer{}
		req := as("ann", taskRequest(mcp.MethodListen, `{"notifications":{"taskIds":["`+ids[0]+`","`+ids[1]+`"]}}`))
		req.Peer = p
		ctx, cancel := context.WithCancel(t.Context())
		listening := make(chan struct{})
		go func() {
			defer close(listening)
			_, _ = servers[1].ServeMCP(ctx, req) // it ends with ctx
		}()
		time.Sleep(time.Second)
		stores[1].away.Store(true)
		for _, id := range ids {
			if _, err := servers[0].ServeMCP(t.Context(), as("ann", taskRequest("tasks/cancel", `{"taskId":"`+id+`"}`))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		stores[1].away.Store(false)
		time.Sleep(10 * time.Second)
		cancel()
		<-listening
		cancelled := map[string]bool{}
		for _, change := range p.changes[1:] {
			var task mcpwire.Task
			if err := mcp.Decode(change.Params, &task); err != nil {
				t.Fatal(err)
			}
			if task.Status == mcpwire.TaskCancelled {
				cancelled[task.TaskID] = true
			}
		}
		if len(cancelled) != 2 {
			t.Errorf("the client has heard of the end of %d tasks, want 2", len(cancelled))
		}
	})
}

// A tool that one replica removes does not end tasks that run at another one.
func TestRemovedToolAtReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, _ := sharedKeys(t)
		memory, gone := new(tasks.Memory), new(atomic.Value)
		gone.Store("")
		var servers []*server.Server
		for i := range 2 {
			s := server.New("replica", "1", &server.Options{Keys: keys, Tasks: &replicaStore{Memory: memory, name: fmt.Sprint(i), gone: gone}})
			defer s.Close()
			server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
				select {
				case <-time.After(10 * time.Second):
					return "done", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}, must)
			servers = append(servers, s)
		}
		id := beginTask(t, servers[0], as("ann", taskRequest("tools/call", `{"name":"work","arguments":{}}`))).TaskID
		servers[1].Remove(server.KindTool, "work")
		time.Sleep(20 * time.Second)
		if task := getTask(t, servers[0], "ann", id); task.Status != mcpwire.TaskCompleted {
			t.Errorf("%+v", task)
		}
	})
}
