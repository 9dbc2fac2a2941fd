package calling_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// stuck is a connection to a server that answers the probe and then reads no more.
type stuck struct {
	in     chan []byte
	closed chan struct{}
	sent   atomic.Int32
}

func (s *stuck) Read() ([]byte, error) {
	select {
	case frame := <-s.in:
		return frame, nil
	case <-s.closed:
		return nil, io.EOF
	}
}

func (s *stuck) Write([]byte) error {
	if s.sent.Add(1) == 1 {
		s.in <- []byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}}`)
		return nil
	}
	<-s.closed
	return mcp.ErrClosed
}

func (s *stuck) Close() error { close(s.closed); return nil }

func TestACallEndsThoughTheServerDoesNotRead(t *testing.T) {
	conn := &stuck{in: make(chan []byte, 1), closed: make(chan struct{})}
	c, err := overconn.Connect(t.Context(), conn, deaf{}, "", transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if err != nil {
		t.Fatal(err)
	}
	params := json.RawMessage(`{"name":"echo","arguments":{"m":"` + strings.Repeat("x", 1<<20) + `"}}`)
	for range 3 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("enough"))
		if _, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: params}); err == nil || err.Error() != "enough" {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	c.Close()
}

type deaf struct{}

func (deaf) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.MethodNotFound(req.Method)
}
func (deaf) Notify(mcp.Notification) {}
func (deaf) Down(error)              {}

// An answer that cannot be read ends its call, rather than let it wait for ever.
func TestAnUnreadableAnswerEndsItsCall(t *testing.T) {
	for name, answer := range map[string]string{
		"Latin-1":             "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}",
		"Latin-1, id last":    "{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]},\"jsonrpc\":\"2.0\",\"id\":2}",
		"too deep":            `{"jsonrpc":"2.0","id":2,"result":{"content":` + strings.Repeat("[", 1100) + strings.Repeat("]", 1100) + `}}`,
		"cut short":           `{"jsonrpc":"2.0","result":{"content":[]`,
		"an error without id": `{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}`,
		"in a batch":          `[{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			near, far := memory.Pipe()
			go answerOnce(far, answer)
			c, err := overconn.Connect(t.Context(), near, deaf{}, "", transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodListTools}); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// answerOnce answers the probe, and the next request with answer.
func answerOnce(far transport.Conn, answer string) {
	for i := 0; ; i++ {
		if _, err := far.Read(); err != nil {
			return
		}
		if i == 0 {
			_ = far.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}}`))
		} else {
			_ = far.Write([]byte(answer))
		}
	}
}

// slow is a connection to a peer that reads a frame for each value of turn.
type slow struct {
	stuck
	turn chan struct{}

	mu   sync.Mutex
	wire []string
}

func (s *slow) Write(frame []byte) error {
	if s.sent.Add(1) == 1 {
		s.sent.Store(0)
		return s.stuck.Write(frame)
	}
	select {
	case <-s.turn:
	case <-s.closed:
		return mcp.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wire = append(s.wire, string(frame))
	return nil
}

// A request that is given up while it waits to be written is written before its cancellation.
func TestACancellationDoesNotOvertakeItsRequest(t *testing.T) {
	for range 20 {
		conn := &slow{stuck: stuck{in: make(chan []byte, 1), closed: make(chan struct{})}, turn: make(chan struct{})}
		c, err := overconn.Connect(t.Context(), conn, deaf{}, "", transport.ClientOptions{Logger: quiet}) // a tap would take longer than the calls do
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				params := fmt.Sprintf(`{"name":"%d","arguments":{"m":"%s"}}`, i, strings.Repeat("x", 1<<15))
				if _, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(params)}); err == nil {
					t.Error("the call was answered")
				}
			})
		}
		for conn.sent.Load() < 1+4 { // the probe, and all of them
			time.Sleep(time.Millisecond)
		}
		cancel()
		calls.Wait()
		for range 8 {
			conn.turn <- struct{}{}
		}
		c.Close()
		seen := map[string]bool{}
		for _, frame := range conn.wire {
			msg, err := jsonrpc.Parse([]byte(frame), nil)
			switch {
			case err != nil:
				t.Fatal(err)
			case msg.IsRequest():
				seen[msg.ID.String()] = true
			case !seen[string(rawjson.Lookup(msg.Params, "requestId"))]:
				t.Fatalf("%s came before its request", frame)
			}
		}
	}
}

// brokenPipe is a connection whose writes fail with refused once the probe was answered. If last is
// not nil, Read returns it half a second after the first write that fails.
type brokenPipe struct {
	stuck
	refused, last error
	failed        chan struct{}
}

func (b *brokenPipe) Write(frame []byte) error {
	if b.sent.Load() == 0 {
		return b.stuck.Write(frame)
	}
	if b.sent.Add(1) == 2 {
		close(b.failed)
	}
	return b.refused
}

func (b *brokenPipe) Read() ([]byte, error) {
	var failed chan struct{}
	if b.last != nil {
		failed = b.failed
	}
	select {
	case frame := <-b.in:
		return frame, nil
	case <-b.closed:
		return nil, io.EOF
	case <-failed:
		time.Sleep(500 * time.Millisecond)
		return nil, b.last
	}
}

// If a request cannot be written because the peer has ended the connection, its error is the reason
// that the peer has sent, although the reading loop has not read it yet. If the connection stays
// readable, the error of the write comes after a moment; if only the request was refused, at once.
func TestWriteErrorIsExplained(t *testing.T) {
	cut, reason, refusal := fmt.Errorf("%w: use of a closed connection", mcp.ErrConnection), errors.New("status 4001: go away"), errors.New("no token")
	for name, test := range map[string]struct {
		refused, last, want error
		takes               time.Duration
	}{
		"the peer says why": {refused: cut, last: reason, want: reason, takes: 500 * time.Millisecond},
		"closed":            {refused: mcp.ErrClosed, last: reason, want: reason, takes: 500 * time.Millisecond},
		"still readable":    {refused: cut, want: cut, takes: time.Second},
		"one refusal":       {refused: refusal, want: refusal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &brokenPipe{
					stuck:   stuck{in: make(chan []byte, 1), closed: make(chan struct{})},
					refused: test.refused, last: test.last, failed: make(chan struct{}),
				}
				c, err := overconn.Connect(t.Context(), conn, deaf{}, "", transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				begun := time.Now()
				_, err = c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
				if !errors.Is(err, mcp.ErrConnection) || !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if took := time.Since(begun); took != test.takes {
					t.Errorf("the error came after %v, want %v", took, test.takes)
				}
			})
		})
	}
}

// A server that asks without end is answered with errors beyond a bound.
func TestQuestionsAreBounded(t *testing.T) {
	near, far := memory.Pipe()
	asking := make(chan struct{})
	refused := make(chan struct{})
	go floodQuestions(far, asking, refused)
	c, err := overconn.Connect(t.Context(), near, blockingAnswerer{asking}, "", transport.ClientOptions{Logger: quiet, Revision: mcp.Revision20251125, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-refused:
	case <-time.After(time.Minute):
		t.Error("a thousand questions were taken")
	}
	c.Close()
}

// blockingAnswerer answers a question only when the connection ends.
type blockingAnswerer struct{ asking chan struct{} }

func (p blockingAnswerer) ServeMCP(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
func (blockingAnswerer) Notify(mcp.Notification) {}
func (blockingAnswerer) Down(error)              {}

func floodQuestions(far transport.Conn, asking, refused chan struct{}) {
	defer close(asking)
	if _, err := far.Read(); err != nil {
		return
	}
	_ = far.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`))
	if _, err := far.Read(); err != nil { // the handshake has ended
		return
	}
	for i := range 1000 {
		if far.Write([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i))) != nil {
			return
		}
	}
	for {
		frame, err := far.Read()
		if err != nil {
			return
		}
		if bytes.Contains(frame, []byte(`"error"`)) {
			close(refused)
			return
		}
	}
}
