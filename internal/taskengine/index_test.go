package taskengine

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/nats-io/nats.go/jetstream"
)

// The entry of a stored record is the same as that of the decoded record. The records of earlier
// versions of dowel lack some members.
func TestReadEntry(t *testing.T) {
	full := newRecord("AAAA", "ann \"<é>\"")
	full.Tool, full.Space, full.Runner, full.Epoch, full.Status = "tool", "space", "one", 2, tasks.Completed
	full.Params, full.Result = json.RawMessage(`{"id":"BBBB","owner":"bob"}`), json.RawMessage(`{"status":"working"}`)
	data, err := encodeRecord(full)
	if err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{
		string(data),
		`{"id":"AAAA","version":0,"status":"working","created":"2026-11-01T10:00:00Z","updated":"2026-11-01T10:00:00Z","ttl":60000000000,"poll":0,"tool":"t","params":null}`,
		`{"ttl":1,"params":{},"tool":"","created":"2026-11-01T10:00:00.5+02:00","owner":"ann","status":"failed","id":"AAAA"}`,
	} {
		r, err := decodeRecord([]byte(stored), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := readEntry([]byte(stored)), newEntry(r); got == nil || !got.expires.Equal(want.expires) ||
			got.id != want.id || got.owner != want.owner || got.tool != want.tool || got.ended != want.ended {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, broken := range []string{"", "null", "[]", `{"id":"AAAA"`, `{"id":"AAAA","ttl":"x"}`, `{"id":"AAAA","created":1}`} {
		if known := readEntry([]byte(broken)); known != nil {
			t.Errorf("%s: %+v", broken, known)
		}
	}
}

// The members that an entry does not need are not decoded.
func TestReadEntryAllocations(t *testing.T) {
	r := newRecord("AAAA", "ann")
	r.Params, r.Answers = json.RawMessage(`{}`), map[string]json.RawMessage{}
	for n := range 100 {
		r.Answers[idOf(n)] = json.RawMessage(`{"action":"accept"}`)
	}
	data, err := encodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { readEntry(data) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// A list asks for several records at once, and has all of them.
func TestListLoadsSeveralAtOnce(t *testing.T) {
	e := openEngine(t)
	for n := range loadsAtOnce {
		if err := e.Create(t.Context(), newRecord(idOf(n), "ann"), 0); err != nil {
			t.Fatal(err)
		}
	}
	gate := &gatedStream{Stream: e.stream}
	gate.all.Add(loadsAtOnce)
	e.stream = gate
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if own, err := e.List(ctx, "ann"); err != nil || len(own) != loadsAtOnce {
		t.Errorf("%d records, %v", len(own), err)
	}
}

// A record that only another version of dowel can decode hides no other record of its owner or of
// its tool.
func TestUndecodableRecord(t *testing.T) {
	e := openEngine(t)
	if err := e.Create(t.Context(), newRecord("AAAA", "ann"), 0); err != nil {
		t.Fatal(err)
	}
	const stored = `{"id":"BBBB","owner":"ann","tool":"t","status":"working","created":"2026-11-01T10:00:00Z","ttl":3153600000000000000,"asked":[]}`
	if _, err := e.js.Publish(t.Context(), e.opts.Subject+"BBBB", []byte(stored)); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), e.js, Options{Runner: "two"})
	if err != nil || len(again.known) != 2 {
		t.Fatalf("%d records, %v, want both in the index", len(again.known), err)
	}
	if own, err := again.List(t.Context(), "ann"); err != nil || len(own) != 1 {
		t.Errorf("%d records of the owner, %v", len(own), err)
	}
	if open, err := again.ListTool(t.Context(), "t"); err != nil || len(open) != 1 {
		t.Errorf("%d records of the tool, %v", len(open), err)
	}
}

// gatedStream reads records only when loadsAtOnce of them are asked for.
type gatedStream struct {
	jetstream.Stream
	all sync.WaitGroup
}

func (s *gatedStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	s.all.Done()
	opened := make(chan struct{})
	go func() {
		s.all.Wait()
		close(opened)
	}()
	select {
	case <-opened:
		return s.Stream.GetLastMsgForSubject(ctx, subject)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
