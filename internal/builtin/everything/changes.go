package everything

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// addChanges adds a resource that changes, and tools that change the server's lists. Subscribed
// clients are notified of both.
func addChanges(s *server.Server) {
	var updates atomic.Int64
	server.Resource(s, watchedURI, "Its text changes with each call of test_trigger_resource_update.", func(context.Context, none) (string, error) {
		return fmt.Sprintf("Updated %d times.", updates.Load()), nil
	}, server.ResourceOptions{Name: "watched-resource", Title: "Watched resource", MIMEType: "text/plain"})

	server.Tool(s, "test_trigger_resource_update", "Changes the resource "+watchedURI+".", func(context.Context, none) (string, error) {
		updates.Add(1)
		s.Updated(watchedURI)
		return "The resource has changed.", nil
	})

	server.Tool(s, "test_trigger_tool_change", "Adds the tool dynamic_tool or, if it exists, removes it.", func(context.Context, none) (string, error) {
		return toggleItem(s, server.KindTool, "dynamic_tool", func(name string) (server.Item, error) {
			return server.NewTool(name, "Was added while the server ran.", returnConstant("I was added."), hints)
		})
	})

	server.Tool(s, "test_trigger_prompt_change", "Adds the prompt dynamic_prompt or, if it exists, removes it.", func(context.Context, none) (string, error) {
		return toggleItem(s, server.KindPrompt, "dynamic_prompt", func(name string) (server.Item, error) {
			return server.NewPrompt(name, "Was added while the server ran.", returnConstant("I was added."))
		})
	})

	server.Tool(s, "test_trigger_resource_change", "Adds the resource test://dynamic-resource or, if it exists, removes it.", func(context.Context, none) (string, error) {
		return toggleItem(s, server.KindResource, "test://dynamic-resource", func(uri string) (server.Item, error) {
			return server.NewResource(uri, "Was added while the server ran.", returnConstant("I was added."), server.ResourceOptions{Name: "dynamic-resource"})
		})
	})
}

// Tick announces at intervals that the watched resource has changed, so that a subscribed client
// receives notifications. stop ends that and waits for the end; it may be called more than once.
func Tick(s *server.Server, every time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.Updated(watchedURI)
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(done); <-ended })
}

// toggleItem removes an item if it exists, otherwise adds it. If another call adds the item at the
// same time, it returns an error.
func toggleItem(s *server.Server, kind server.Kind, name string, item func(name string) (server.Item, error)) (string, error) {
	if s.Remove(kind, name) > 0 {
		return fmt.Sprintf("Removed the %s %s.", kind, name), nil
	}
	added, err := item(name)
	if err == nil {
		err = s.Add(added)
	}
	return fmt.Sprintf("Added the %s %s.", kind, name), err
}
