// Package bench measures dowel beside its floor, in one run: each benchmark runs rounds of both in
// turn and reports the median of the ratios within a round. Allocations are counted for dowel,
// client and server together.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/floor"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

type echo struct {
	Message string `json:"message" doc:"What to say"`
}

type reply struct {
	Message string `json:"message"`
	Length  int    `json:"length"`
}

func echoServer() *server.Server {
	s := server.New("bench", "1", &server.Options{
		Logger: slog.New(slog.DiscardHandler), ListInterval: -1, // or a change would wait for the one before it
		Limit: server.Limit{PerSecond: -1},
	})
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in echo) (string, error) { return in.Message, nil })
	server.Tool(s, "struct", "Says it as a struct.", func(_ context.Context, in echo) (reply, error) {
		return reply{in.Message, len(in.Message)}, nil
	})
	return s
}

func dial(b testing.TB, target any, opts ...client.Options) *client.Client {
	o := options.Merge(opts)
	c, err := client.Dial(context.Background(), target, &o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// both is the two directions of a pair of OS pipes.
type both struct {
	io.Reader
	io.Writer
	close func() error
}

func (b both) Close() error { return b.close() }

func pipes(b testing.TB) (near, far io.ReadWriteCloser) {
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	near = both{r1, w2, func() error { return errors.Join(w2.Close(), r1.Close()) }}
	far = both{r2, w1, func() error { return errors.Join(w1.Close(), r2.Close()) }}
	return near, far
}

func dowelOver(b testing.TB, medium string) *client.Client {
	if medium == "memory" {
		return dial(b, echoServer())
	}
	near, far := pipes(b)
	served := make(chan struct{})
	go func() { defer close(served); _ = stdio.ServeStream(context.Background(), far, echoServer()) }()
	c := dial(b, near)
	b.Cleanup(func() { c.Close(); <-served })
	return c
}

func floorOver(b testing.TB, medium string, workers int) *floor.Client {
	var near, far floor.Link
	if medium == "memory" {
		near, far = floor.Memory()
	} else {
		n, f := pipes(b)
		near, far = floor.Lines(n), floor.Lines(f)
	}
	served := make(chan struct{})
	go func() { defer close(served); floor.Serve(far, workers) }()
	c := floor.NewClient(near)
	b.Cleanup(func() { c.Close(); <-served })
	return c
}

// rounds times n calls of each in turn and reports dowel's time and the median ratio.
func rounds(b *testing.B, n int, dowel, least func(n int)) {
	dowel(min(n, 100)) // warm
	least(min(n, 100))
	const count = 9
	var ratios, cpus, times []float64
	for b.Loop() {
		ratios, cpus, times = ratios[:0], cpus[:0], times[:0]
		for range count {
			f, fCPU := timed(func() { least(n) })
			d, dCPU := timed(func() { dowel(n) })
			ratios, times = append(ratios, float64(d)/float64(f)), append(times, float64(d)/float64(n))
			cpus = append(cpus, float64(dCPU)/float64(max(fCPU, 1)))
		}
	}
	slices.Sort(ratios)
	slices.Sort(cpus)
	slices.Sort(times)
	b.ReportMetric(ratios[count/2], "x-floor")
	b.ReportMetric(cpus[count/2], "x-floor-cpu") // steadier than time on a busy machine
	b.ReportMetric(times[count/2], "ns/call")
	allocs, bytes := perCall(func() { dowel(200) }, 200)
	b.ReportMetric(allocs, "allocs/call")
	b.ReportMetric(bytes, "B/call")
	b.ReportMetric(0, "ns/op")
}

func timed(f func()) (wall, cpu time.Duration) {
	start, used := time.Now(), cpuTime()
	f()
	return time.Since(start), cpuTime() - used
}

func perCall(f func(), n int) (allocs, bytes float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

func serially(call func()) func(int) {
	return func(n int) {
		for range n {
			call()
		}
	}
}

func inFlight(width int, call func()) func(int) {
	return func(n int) {
		var wg sync.WaitGroup
		for range width {
			wg.Go(func() {
				for range n / width {
					call()
				}
			})
		}
		wg.Wait()
	}
}

func BenchmarkCall(b *testing.B) {
	sizes := map[string]string{"small": "hello", "1MiB": strings.Repeat("All work and no play. ", 1<<20/22)}
	for _, medium := range []string{"memory", "pipes"} {
		for _, size := range []string{"small", "1MiB"} {
			message := sizes[size]
			n := 20000
			if size != "small" {
				n = 40
			}
			c, f := dowelOver(b, medium), floorOver(b, medium, 64)
			d := func() { callEcho(b, c, message) }
			least := func() { f.Call(message) }
			b.Run(medium+"/"+size+"/serial", func(b *testing.B) { rounds(b, n, serially(d), serially(least)) })
			if size == "small" {
				b.Run(medium+"/"+size+"/64", func(b *testing.B) { rounds(b, n, inFlight(64, d), inFlight(64, least)) })
			}
		}
	}
}

func callEcho(b testing.TB, c *client.Client, message string) {
	got, err := client.Call[string](context.Background(), c, "echo", echo{message})
	if err != nil || len(got) != len(message) {
		b.Fatal(got, err)
	}
}

func BenchmarkCallStruct(b *testing.B) {
	c, f := dowelOver(b, "memory"), floorOver(b, "memory", 64)
	rounds(b, 20000, serially(func() { callStruct(b, c) }), serially(func() { f.Call("hello") }))
}

func callStruct(b testing.TB, c *client.Client) {
	got, err := client.Call[reply](context.Background(), c, "struct", echo{"hello"})
	if err != nil || got.Length != 5 {
		b.Fatal(got, err)
	}
}

type search struct {
	Query   string   `json:"query" doc:"What to look for, in the syntax of the search box" minLength:"1" maxLength:"256"`
	Repos   []string `json:"repos,omitempty" doc:"Repositories to look in, owner/name"`
	Sort    string   `json:"sort,omitempty" doc:"How to order the results" enum:"created,updated,comments"`
	PerPage int      `json:"perPage,omitempty" doc:"Results per page" minimum:"1" maximum:"100"`
	Since   string   `json:"since,omitempty" doc:"Only what was updated after this time" format:"date-time"`
}

const toolCount = 1000

func listServer() *server.Server {
	s := server.New("bench", "1", nil)
	for i := range toolCount {
		server.Tool(s, fmt.Sprintf("search_issues_%d", i), "Searches issues and pull requests in repositories that the user can see. Supports qualifiers such as is:open and label:bug.",
			func(context.Context, search) (string, error) { return "", nil }, server.ToolOptions{Annotations: mcp.ReadOnly})
	}
	return s
}

func BenchmarkList1000(b *testing.B) {
	c := dial(b, listServer(), client.Options{NoCache: true})
	all := listed(b, c)
	near, far := floor.Memory()
	served := make(chan struct{})
	go func() { defer close(served); floor.ServeList(far, map[string]any{"tools": all}) }()
	f := floor.NewClient(near)
	defer func() { f.Close(); <-served }()
	rounds(b, 10, serially(func() { listed(b, c) }), serially(func() {
		var out mcp.ListToolsResult
		if err := f.List(&out); err != nil || len(out.Tools) != toolCount {
			b.Fatal(err)
		}
	}))
}

func listed(b testing.TB, c *client.Client) []mcp.Tool {
	tools, err := client.All(c.Tools(context.Background()))
	if err != nil || len(tools) != toolCount {
		b.Fatal(len(tools), err)
	}
	return tools
}

const listeners = 1000

// BenchmarkFanOut1000 announces one change to in-memory clients, raw transports as a gateway would
// hold.
func BenchmarkFanOut1000(b *testing.B) {
	s := echoServer()
	got := make(chan struct{}, listeners)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	acked := make(chan struct{}, listeners)
	for range listeners {
		t, err := memory.Dialer(s).Dial(ctx, silent{}, clientOptions)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			own, done := context.WithCancel(ctx) // as each client has
			defer done()
			_, _ = t.RoundTrip(own, &mcp.Request{
				Method: mcp.MethodListen, Params: json.RawMessage(`{"notifications":{"toolsListChanged":true}}`),
				Notify: func(n mcp.Notification) {
					if n.Method == mcp.NotificationAcknowledged {
						acked <- struct{}{}
						return
					}
					got <- struct{}{}
				},
			})
			t.Close()
		})
	}
	for range listeners {
		<-acked
	}
	received := make(chan struct{}, listeners)
	f, stop := floor.NewFanOut(listeners, received)
	rounds(b, 20, serially(func() {
		s.ListChanged(server.KindTool)
		for range listeners {
			<-got
		}
	}), serially(func() {
		f.Send()
		for range listeners {
			<-received
		}
	}))
	stop()
	cancel()
	wg.Wait()
}
