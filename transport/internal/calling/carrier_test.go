package calling_test

import (
	"context"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
)

// heldCarrier answers initialize at once, and each other request when the test lets it.
type heldCarrier struct {
	begun   chan string // gets the method of each other request
	release chan bool
}

func (c heldCarrier) Carry(_ context.Context, m *calling.Outbound, back calling.Receiver) error {
	msg, err := jsonrpc.Parse(m.Frame, nil)
	switch {
	case err != nil || back == nil:
		return err
	case m.Method == mcpwire.MethodInitialize:
		back.Receive([]byte(`{"jsonrpc":"2.0","id":` + msg.ID.String() + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}}`))
	default:
		c.begun <- m.Method
		<-c.release
		back.Receive([]byte(`{"jsonrpc":"2.0","id":` + msg.ID.String() + `,"result":{}}`))
	}
	return nil
}

func (heldCarrier) Close() error { return nil }

// notedInbound calls noted for each notification outside of requests.
type notedInbound struct {
	mcp.Inbound
	noted func()
}

func (n notedInbound) Notify(mcp.Notification) { n.noted() }
func (notedInbound) Down(error)                {}

// A notification on the session stream belongs to the request that was there when it arrived, also
// if that is answered meanwhile, and another one has begun.
func TestNotificationOnSessionStreamOfAnsweredRequest(t *testing.T) {
	carrier := heldCarrier{make(chan string), make(chan bool)}
	first, second, wrong := make(chan error, 1), make(chan error, 1), make(chan mcp.Notification, 1)
	var c calling.Caller
	in := notedInbound{noted: func() { // between the look for the request and the delivery
		carrier.release <- true
		if err := <-first; err != nil {
			t.Error(err)
		}
		go func() {
			_, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListPrompts, Notify: func(n mcp.Notification) { wrong <- n }})
			second <- err
		}()
		<-carrier.begun
	}}
	c = calling.NewCaller(carrier, in, transport.ClientOptions{Revision: mcp.Revision20251125, Logger: quiet, Extensions: []mcp.Extension{mcpwire.TasksExtension()}})
	if err := c.Connect(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcpwire.MethodTaskResult, Params: []byte(`{"taskId":"a"}`), Notify: func(mcp.Notification) {}})
		first <- err
	}()
	<-carrier.begun
	c.Receive([]byte(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"a","status":"working"}}`))
	carrier.release <- true
	if err := <-second; err != nil {
		t.Error(err)
	}
	select {
	case n := <-wrong:
		t.Errorf("another request has got %s", n.Method)
	default:
	}
}
