package gosdk

import (
	"context"
	"errors"
	"os/exec"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type session struct {
	*mcp.ClientSession
	server *mcp.ServerSession // nil if the server is in another process
}

// Dial implements peer.Peer.
func (Peer) Dial(ctx context.Context, t peer.Target, era peer.Era) (peer.Session, error) {
	opts := &mcp.ClientOptions{}
	if t.OnChange != nil {
		opts.ResourceUpdatedHandler = func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { t.OnChange() }
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, opts)
	acknowledged := acknowledgements(c, t.OnChange != nil)
	s := &session{}
	to, err := s.transport(ctx, t)
	if err != nil {
		return nil, err
	}
	if s.ClientSession, err = c.Connect(ctx, to, &mcp.ClientSessionOptions{ProtocolVersion: string(era)}); err != nil {
		return nil, err
	}
	if t.OnChange == nil {
		return s, nil
	}
	if err := s.Subscribe(ctx, &mcp.SubscribeParams{URI: peer.Watched}); err != nil || era == peer.Legacy {
		return s, err
	}
	<-acknowledged
	return s, nil
}

// acknowledgements returns a channel that receives when the server has acknowledged a subscription.
// Subscribe does not wait for that.
func acknowledgements(c *mcp.Client, listens bool) <-chan struct{} {
	came := make(chan struct{}, 1)
	if listens {
		c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "notifications/subscriptions/acknowledged" {
					came <- struct{}{}
				}
				return next(ctx, method, req)
			}
		})
	}
	return came
}

func (s *session) transport(ctx context.Context, t peer.Target) (mcp.Transport, error) {
	switch {
	case t.Server != nil:
		near, far := mcp.NewInMemoryTransports()
		served, err := t.Server.(server).Connect(ctx, far, nil)
		s.server = served
		return near, err
	case t.Stream != nil:
		return &mcp.IOTransport{Reader: t.Stream, Writer: t.Stream}, nil
	case t.Command != nil:
		return &mcp.CommandTransport{Command: exec.Command(t.Command[0], t.Command[1:]...)}, nil
	}
	return &mcp.StreamableClientTransport{Endpoint: t.URL, HTTPClient: t.HTTP}, nil
}

// Call implements peer.Session.
func (s *session) Call(ctx context.Context, message string) (string, error) {
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: echo{message}})
	if err != nil {
		return "", err
	}
	if result.IsError || len(result.Content) != 1 {
		return "", errors.New("the tool failed")
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		return "", errors.New("the result is not a text")
	}
	return text.Text, nil
}

// List implements peer.Session.
func (s *session) List(ctx context.Context) (n int, err error) {
	for _, err := range s.Tools(ctx, nil) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Close implements peer.Session.
func (s *session) Close() error {
	err := s.ClientSession.Close()
	if s.server != nil {
		_ = s.server.Wait() // the error only says that the client has closed
	}
	return err
}
