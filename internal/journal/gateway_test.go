package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// askingServer is a server with a tool that asks, one that makes progress and one that waits.
func askingServer() *server.Server {
	s := server.New("asking", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		name, err := server.Ask[string](ctx, "name", "What is your name?")
		return "hello " + name, err
	})
	server.Tool(s, "echo", "", func(ctx context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		server.Progress(ctx, 1, 2, "half way")
		return in.Text, nil
	})
	server.Tool(s, "wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	return s
}

// recordedGateway returns the URL of a recorded gateway over one server that speaks a revision.
func recordedGateway(t *testing.T, r *journal.Recorder, upstream mcp.Revision) string {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	h := hub.New(&hub.Options{Logger: logger, DialContext: func(ctx context.Context, name string) context.Context {
		return framesink.WithDialing(ctx, r.ServerConn(name))
	}})
	h.Apply([]hub.Definition{{Name: "up", Target: askingServer(), Options: client.Options{Wire: client.Wire{Revision: upstream}}}}, "the test begins")
	g := gateway.New(h, &gateway.Options{Logger: logger})
	handler := g.HTTPHandler(&gateway.HTTPOptions{Middleware: []mcp.Middleware{r.Middleware()}})
	web := httptest.NewUnstartedServer(handler)
	web.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return framesink.WithServing(ctx, r.ClientConn())
	}
	web.Start()
	t.Cleanup(func() {
		_ = handler.Shutdown(context.Background())
		web.Close()
		g.Close()
		h.Close()
	})
	return web.URL + "/mcp"
}

// dialGateway connects a client of a revision that answers questions with "Ada" after a moment.
func dialGateway(t *testing.T, url, name string, r mcp.Revision) *client.Client {
	t.Helper()
	return dialRecorded(t, nil, url, name, r)
}

// dialRecorded is dialGateway with a sink for the client's own frames, or nil.
func dialRecorded(t *testing.T, sink framesink.Sink, url, name string, r mcp.Revision) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if sink != nil {
		ctx = framesink.WithDialing(ctx, sink)
	}
	o := client.Options{Info: mcp.Implementation{Name: name, Version: "1"}, Wire: client.Wire{Revision: r}, Logger: slog.New(slog.DiscardHandler)}
	o.Answers.Elicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"Ada"}`)}, nil
	}
	c, err := client.Dial(ctx, url, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// callOf returns the last state of the only call of a tool.
func callOf(t *testing.T, r *journal.Recorder, tool string) (op journal.Operation, frames []*journal.Frame) {
	t.Helper()
	n := 0
	for _, state := range lastStates(t, r) {
		if state.Method == mcp.MethodCallTool && state.Name == tool {
			op = state
			n++
		}
	}
	records, _ := readAll(t, r)
	for _, record := range records {
		if record.Frame != nil && n == 1 && record.Frame.Operation == op.ID {
			frames = append(frames, record.Frame)
		}
	}
	if n != 1 {
		t.Errorf("%d operations call %s, want 1", n, tool)
		for _, record := range records {
			if f := record.Frame; f != nil {
				t.Logf("%d %v %v op %d %s", record.Seq, f.Leg, f.Direction, f.Operation, f.Body)
			}
		}
	}
	return op, frames
}

// All rounds of a call with a question are one operation on both legs, in every combination of
// eras.
func TestOneOperationForACallThatAsks(t *testing.T) {
	t.Parallel()
	for _, revisions := range [][2]mcp.Revision{
		{mcp.LatestRevision, mcp.LatestRevision}, {mcp.LatestRevision, mcp.LatestLegacyRevision},
		{mcp.LatestLegacyRevision, mcp.LatestRevision}, {mcp.LatestLegacyRevision, mcp.LatestLegacyRevision},
	} {
		t.Run(fmt.Sprintf("client %s, server %s", revisions[0], revisions[1]), func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t, journal.Options{})
			c := dialGateway(t, recordedGateway(t, r, revisions[1]), "cursor", revisions[0])
			if got, err := client.Call[string](t.Context(), c, "up__ask", struct{}{}); err != nil || got != "hello Ada" {
				t.Fatal(got, err)
			}
			op, frames := callOf(t, r, "up__ask")
			if op.Status != journal.OK || op.Client != "cursor" || op.Server != "up" || op.Questions != 1 || op.Calls == 0 {
				t.Errorf("the operation is %+v", op)
			}
			if rounds := 2 - boolInt(!revisions[0].Modern()); op.Rounds != rounds {
				t.Errorf("%d rounds, want %d", op.Rounds, rounds)
			}
			if total := op.End.Sub(op.Start); op.Took() != total || op.InUser == 0 || op.InServer == 0 || op.InDowel == 0 {
				t.Errorf("%v in user, %v in server and %v in dowel, want %v together", op.InUser, op.InServer, op.InDowel, total)
			}
			legs := map[journal.Leg]int{}
			for _, f := range frames {
				legs[f.Leg]++
			}
			if legs[journal.ClientLeg] < 4 || legs[journal.ServerLeg] < 4 { // two rounds, or a call and a question
				t.Errorf("the operation has %v frames", legs)
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Calls of several clients at the same time are not mixed up.
func TestParallelCallsStayApart(t *testing.T) {
	t.Parallel()
	const clients, calls = 4, 15
	for _, upstream := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		r := newRecorder(t, journal.Options{})
		url := recordedGateway(t, r, upstream)
		var wg sync.WaitGroup
		for i := range clients {
			c := dialGateway(t, url, fmt.Sprint("client-", i), []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision}[i%2])
			for j := range calls {
				wg.Go(func() {
					text := fmt.Sprintf("text-%d-%d.", i, j)
					if got, err := client.Call[string](t.Context(), c, "up__echo", map[string]string{"text": text}); err != nil || got != text {
						t.Error(got, err)
					}
				})
			}
		}
		wg.Wait()
		texts := map[uint64]string{}
		linked := 0
		records, lost := readAll(t, r)
		for _, record := range records {
			f := record.Frame
			if f == nil || f.Kind == journal.Notification || !bytes.Contains(f.Body, []byte("text-")) {
				continue
			}
			_, text, _ := bytes.Cut(f.Body, []byte("text-"))
			text, _, _ = bytes.Cut(text, []byte("."))
			if other, known := texts[f.Operation]; known && other != string(text) || f.Operation == 0 {
				t.Fatalf("operation %d has the frames of %s and %s", f.Operation, other, text)
			}
			texts[f.Operation] = string(text)
			linked++
		}
		if lost != 0 || len(texts) != clients*calls || linked != 4*clients*calls {
			t.Errorf("%d operations with %d frames, %d lost; want %d with %d", len(texts), linked, lost, clients*calls, 4*clients*calls)
		}
		for id, op := range lastStates(t, r) {
			if want := "client-" + texts[id][:min(1, len(texts[id]))]; texts[id] != "" && (op.Client != want || op.Status != journal.OK || op.Server != "up") {
				t.Errorf("operation %d is %+v, want one of %s", id, op, want)
			}
		}
	}
}

// A call that its client cancels ends as cancelled.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		r := newRecorder(t, journal.Options{})
		c := dialGateway(t, recordedGateway(t, r, revision), "cursor", revision)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := client.Call[string](ctx, c, "up__wait", struct{}{})
			done <- err
		}()
		cursor := r.Cursor(0)
		awaitState(t, cursor, func(op *journal.Operation) bool { return op.Name == "up__wait" })
		cancel()
		<-done
		awaitState(t, cursor, func(op *journal.Operation) bool { return op.Name == "up__wait" && op.Status == journal.Cancelled })
	}
}

// awaitState reads until an operation is in a state.
func awaitState(t *testing.T, c *journal.Cursor, want func(*journal.Operation) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		records, _, err := c.Next(ctx, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			if record.Operation != nil && want(record.Operation) {
				return
			}
		}
	}
}
