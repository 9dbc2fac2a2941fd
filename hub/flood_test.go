package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

const (
	flooding = 100 << 20 // bytes on stderr
	endless  = 10 << 20  // of them, without a line break
)

// flood serves, and writes to stderr without end: lines, and once 10 MB without a line break.
func flood() {
	s := echo("flood")
	var written atomic.Int64
	server.Tool(s, "written", "Tells how much it has written.", func(context.Context, struct{}) (string, error) { return fmt.Sprint(written.Load()), nil })
	go func() {
		text := strings.Repeat("All work and no play. ", 300)
		for n := 0; ; written.Store(int64(n)) {
			end := "\n"
			if n > flooding/2 && n < flooding/2+endless {
				end = ""
			}
			wrote, _ := os.Stderr.WriteString(text + end)
			n += wrote
		}
	}()
	_ = stdio.Serve(context.Background(), s)
}

// An upstream that floods stderr costs neither memory nor time of calls.
func TestFloodsStderr(t *testing.T) {
	before := heap()
	h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "flood", Target: faulty("flood")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := h.Events(ctx, hub.StderrWritten) // of a listener that reads nothing before the end
	var arrived atomic.Int64
	go func() {
		for e := range h.Events(ctx, hub.StderrWritten) {
			arrived.Add(1 + int64(e.Missed))
		}
	}()
	settled(t, h)
	u := h.Upstream("flood")
	var most int64
	var slowest time.Duration
	calls := 0
	// If the hub is slow, lines are left out before they become events. So count the events too.
	const enough = 5000 // more than wait for a listener
	for written := 0; written < flooding || arrived.Load() < enough; calls++ {
		began := time.Now()
		if _, err := callWithin(ctx, u, "hi"); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		written = tellsNumber(t, u, "written")
		most = max(most, heap())
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("%d calls, the slowest %v; at most %d KB", calls, slowest, (most-before)>>10)
	const bound = 48 << 20 // 4,096 events that wait, of 4 KiB each, the tail of 2 MiB, the ring and buffers
	if most-before > bound {
		t.Errorf("it has taken %d MB", (most-before)>>20)
	}
	if slowest > time.Minute {
		t.Errorf("a call has taken %v", slowest)
	}
	lines := stderrOf(u)
	if len(lines) > 500 || len(lines) < 100 {
		t.Errorf("%d lines are kept", len(lines))
	}
	for _, line := range lines {
		if len(line) > 4<<10 {
			t.Fatalf("a line of %d bytes is kept", len(line))
		}
	}
	missed := 0
	for e := range events {
		missed += e.Missed
		cancel()
	}
	if missed == 0 {
		t.Error("a listener that has read nothing is told of no loss")
	}
}

// tellsNumber calls a tool that returns a number.
func tellsNumber(t *testing.T, u *hub.Upstream, tool string) (n int) {
	t.Helper()
	resp, err := u.RoundTrip(t.Context(), hub.Caller{}, &mcp.Request{
		Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":%q,"arguments":{}}`, tool),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(resp.Raw, &out); err != nil || len(out.Content) != 1 {
		t.Fatalf("%s, %v", resp.Raw, err)
	}
	if n, err = strconv.Atoi(out.Content[0].Text); err != nil {
		t.Fatal(err)
	}
	return n
}

// heap returns the memory in use after garbage collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
