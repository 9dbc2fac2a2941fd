package dowel

import (
	"context"
	"errors"
	"sync"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

type session struct {
	*client.Client
	watching sync.WaitGroup
}

// Dial implements peer.Peer.
func (Peer) Dial(ctx context.Context, t peer.Target, era peer.Era) (peer.Session, error) {
	c, err := client.Dial(ctx, target(t), &client.Options{Wire: client.Wire{Revision: mcp.Revision(era)}, HTTP: client.HTTP{Client: t.HTTP}, NoCache: true})
	if err != nil {
		return nil, err
	}
	s := &session{Client: c}
	if t.OnChange == nil {
		return s, nil
	}
	filter := mcp.SubscriptionFilter{ToolsListChanged: true}
	if t.Updates {
		filter = mcp.SubscriptionFilter{ResourceSubscriptions: []string{peer.Watched}}
	}
	return s, s.watch(filter, t.OnChange)
}

func target(t peer.Target) any {
	switch {
	case t.Server != nil:
		return t.Server.(*Server).Server
	case t.Stream != nil:
		return t.Stream
	case t.Command != nil:
		return t.Command
	}
	return t.URL
}

func (s *session) watch(filter mcp.SubscriptionFilter, changed func()) error {
	w, err := s.Watch(context.Background(), filter)
	if err != nil {
		return errors.Join(err, s.Client.Close())
	}
	s.watching.Go(func() {
		for range w.Changes() {
			changed()
		}
	})
	return nil
}

// Call implements peer.Session.
func (s *session) Call(ctx context.Context, message string) (string, error) {
	return client.Call[string](ctx, s.Client, "echo", echo{message})
}

// List implements peer.Session.
func (s *session) List(ctx context.Context) (int, error) {
	tools, err := client.All(s.Tools(ctx))
	return len(tools), err
}

// Close implements peer.Session.
func (s *session) Close() error {
	err := s.Client.Close()
	s.watching.Wait()
	return err
}
