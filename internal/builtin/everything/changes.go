package everything

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// addChanges adds a resource that changes, and tools that change the server's lists, which
// subscribed clients are told about.
func addChanges(s *server.Server) {
	var updates atomic.Int64
	server.Resource(s, watchedURI, "Changes with each call of test_trigger_resource_update.", func(context.Context, none) (string, error) {
		return fmt.Sprintf("Updated %d times.", updates.Load()), nil
	}, server.ResourceOptions{Name: "watched-resource", Title: "Watched resource", MIMEType: "text/plain"})

	server.Tool(s, "test_trigger_resource_update", "Changes the resource "+watchedURI+".", func(context.Context, none) (string, error) {
		updates.Add(1)
		s.Updated(watchedURI)
		return "The resource has changed.", nil
	})

	server.Tool(s, "test_trigger_tool_change", "Adds a tool, or removes it again.", func(context.Context, none) (string, error) {
		return toggleItem(s, server.KindTool, "dynamic_tool", func(name string) (server.Item, error) {
			return server.NewTool(name, "Was added while the server ran.", returnConstant("I was added."), hints)
		})
	})

	server.Tool(s, "test_trigger_prompt_change", "Adds a prompt, or removes it again.", func(context.Context, none) (string, error) {
		return toggleItem(s, server.KindPrompt, "dynamic_prompt", func(name string) (server.Item, error) {
			return server.NewPrompt(name, "Was added while the server ran.", returnConstant("I was added."))
		})
	})

	server.Tool(s, "test_trigger_resource_change", "Adds a resource, or removes it again.", func(context.Context, none) (string, error) {
		return toggleItem(s, server.KindResource, "test://dynamic-resource", func(uri string) (server.Item, error) {
			return server.NewResource(uri, "Was added while the server ran.", returnConstant("I was added."), server.ResourceOptions{Name: "dynamic-resource"})
		})
	})
}

// Tick says again and again that the watched resource has changed, so that a client that subscribes
// to it hears something. stop ends it and waits for the end.
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

// toggleItem removes an item where it is there, else adds it. Calls at the same time may make it
// fail, never wrong.
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
