package sse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// speaker returns a server with a tool that answers with a number of bytes.
func speaker(size int) *server.Server {
	s := server.New("much", "1", &server.Options{Logger: quiet})
	server.Tool(s, "much", "Says much.", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", size), nil })
	return s
}

// counting returns options with a quota, and the number of answers that the limit of a name
// refused.
func counting(l transport.Limits, name string) (streamable.Options, *atomic.Int32) {
	refusals := new(atomic.Int32)
	return streamable.Options{ServerOptions: transport.ServerOptions{Quota: transport.NewQuota(l), Tap: func(f transport.Frame) {
		if f.Kind == transport.Sent {
			refusals.Add(int32(strings.Count(string(f.Data), "("+name+")")))
		}
	}}}, refusals
}

// countAnswers counts the results and the refusals among answers, and reports other errors.
func countAnswers(t *testing.T, answers []json.RawMessage) (results, refused int) {
	t.Helper()
	for _, data := range answers {
		var answer struct{ Error *mcp.Error }
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatal(err)
		}
		switch {
		case answer.Error == nil:
			results++
		case strings.Contains(answer.Error.Message, "(clientBytes)"):
			refused++
		default:
			t.Error(answer.Error)
		}
	}
	return results, refused
}

// Answers to many calls of one client that does not read are bounded. The client keeps its stream:
// what exceeds the limit is answered with an error, and each call gets an answer once it reads.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const calls, most = 40, 3 << 20
	opts, refusals := counting(transport.Limits{ClientBytes: most}, "clientBytes")
	_, web := serve(t, speaker(1<<20), opts)
	p := open(t, web, "/sse")
	p.initialize()
	for id := range calls {
		if got := p.post(toolCall(id+2, "much", "{}")); got != "202" {
			t.Fatal(got)
		}
	}
	polltest.Until(t, "a call is refused", func() bool { return refusals.Load() > 0 })
	if bytes, _, _ := opts.Quota.Used(); bytes > most {
		t.Errorf("%d bytes are counted", bytes)
	}
	var answers []json.RawMessage
	for range calls {
		answers = append(answers, json.RawMessage(p.next()))
	}
	if results, refused := countAnswers(t, answers); results == 0 || refused == 0 {
		t.Errorf("%d results and %d refusals, want some of each", results, refused)
	}
	polltest.Until(t, "nothing is counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes == 0 })
}

// Answers that many clients do not read take a bounded part of the memory.
func TestMemoryOfUnreadAnswers(t *testing.T) {
	const clients, size, most = 40, 4 << 20, 20 << 20
	opts, _ := counting(transport.Limits{Bytes: most}, "bytes")
	opts.Tap = func(transport.Frame) {}
	_, web := serve(t, speaker(size), opts)
	before := heapInUse()
	for range clients {
		p := open(t, web, "/sse")
		p.initialize()
		if got := p.post(toolCall(2, "much", "{}")); got != "202" {
			t.Fatal(got)
		}
	}
	polltest.UntilNil(t, func() error { // the last calls may be in work
		grown := heapInUse() - before
		t.Logf("%d unread answers of %d MiB: %d MiB", clients, size>>20, grown>>20)
		if grown > 2*most {
			return fmt.Errorf("%d MiB are held, more than twice the limit of %d MiB", grown>>20, most>>20)
		}
		return nil
	})
	if bytes, _, _ := opts.Quota.Used(); bytes > most {
		t.Errorf("%d bytes are counted", bytes)
	}
}

// heapInUse returns the memory in use after a garbage collection.
func heapInUse() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The responses of a batch count while they wait for its slowest request.
func TestBatchAnswersAreBounded(t *testing.T) {
	const calls, size, most = 40, 1 << 20, 3 << 20
	s := speaker(size)
	release := make(chan struct{})
	server.Tool(s, "slow", "", func(context.Context, struct{}) (string, error) { <-release; return "slow", nil })
	opts, _ := counting(transport.Limits{ClientBytes: most}, "clientBytes")
	_, web := serve(t, s, opts)
	p := open(t, web, "/sse")
	if got := p.post(strings.Replace(initialize, "2024-11-05", string(mcp.Revision20250326), 1)); got != "202" {
		t.Fatal(got)
	}
	if answer := p.next(); !strings.Contains(answer, string(mcp.Revision20250326)) {
		t.Fatal(answer)
	}
	batch := "[" + toolCall(2, "slow", "{}")
	for id := range calls {
		batch += "," + toolCall(id+3, "much", "{}")
	}
	if got := p.post(batch + "]"); got != "202" {
		t.Fatal(got)
	}
	polltest.Until(t, "two answers are counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes > 2*size })
	close(release)
	var answers []json.RawMessage
	if err := json.Unmarshal([]byte(p.next()), &answers); err != nil {
		t.Fatal(err)
	}
	if results, refused := countAnswers(t, answers); results != 4 || refused != calls-3 {
		t.Errorf("%d results and %d refusals, want 4 and %d", results, refused, calls-3)
	}
	polltest.Until(t, "nothing is counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes == 0 })
}
