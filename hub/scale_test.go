package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

const (
	crowd     = 200
	toolsEach = 20
	slowest   = 2 * time.Second
)

type search struct {
	Query   string   `json:"query" doc:"What to look for, in the syntax of the search box" minLength:"1" maxLength:"256"`
	Repos   []string `json:"repos,omitempty" doc:"Repositories to look in, owner/name"`
	Sort    string   `json:"sort,omitempty" doc:"How to order the results" enum:"created,updated,comments"`
	PerPage int      `json:"perPage,omitempty" doc:"Results per page" minimum:"1" maximum:"100"`
	Since   string   `json:"since,omitempty" doc:"Only what was updated after this time" format:"date-time"`
}

// crowdOf returns 200 servers of 20 tools each, which wait for random times up to max before their
// first answer, and the longest of these times.
func crowdOf(most time.Duration) (definitions []hub.Definition, longest time.Duration) {
	delays := rand.New(rand.NewPCG(1, 2)) // the same ones each time
	for i := range crowd {
		s := server.New(fmt.Sprint("server ", i), "1", &server.Options{Logger: quiet})
		for k := range toolsEach {
			server.Tool(s, fmt.Sprintf("search_issues_%02d", k), "Searches issues and pull requests in repositories that the user can see. Supports qualifiers such as is:open and label:bug.",
				func(context.Context, search) (string, error) { return "", nil }, server.ToolOptions{Annotations: mcp.ReadOnly})
		}
		delay := time.Duration(delays.Int64N(int64(most)))
		longest = max(longest, delay)
		definitions = append(definitions, hub.Definition{Name: fmt.Sprintf("s%03d", i), Target: late(s, delay)})
	}
	return definitions, longest
}

// TestCrowd starts 200 servers of 20 tools each and checks that they start at the same time: all
// are ready soon after the slowest server's delay. Time is fake, so the machine's speed does not
// matter.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		definitions, longest := crowdOf(slowest)
		if ratio := float64(measureCrowd(t, definitions)) / float64(longest); ratio > 1.3 {
			t.Errorf("all are ready after %.2f times the slowest server's delay", ratio)
		}
	})
}

// BenchmarkCrowd starts the same servers in real time, and logs the figures of docs/scale.md.
func BenchmarkCrowd(b *testing.B) {
	for b.Loop() {
		definitions, longest := crowdOf(slowest)
		b.Logf("with delays: × %.2f of the slowest", float64(measureCrowd(b, definitions))/float64(longest))
		definitions, _ = crowdOf(1)
		measureCrowd(b, definitions)
	}
}

// measureCrowd starts upstreams, and returns how long it takes until all are ready.
func measureCrowd(t testing.TB, definitions []hub.Definition) (took time.Duration) {
	heapBefore, stacksBefore, goroutines := heap(), stacks(), runtime.NumGoroutine()
	h := hub.New(&hub.Options{Logger: quiet})
	defer h.Close()
	g := gateway.New(h, &gateway.Options{Logger: quiet, PageSize: 2 * crowd * toolsEach})
	defer g.Close()
	began := time.Now()
	h.Apply(definitions, "the test begins")
	settled(t, h)
	took = time.Since(began)
	for _, u := range h.Upstreams() {
		if s := u.State(); s.Status != hub.Ready {
			t.Fatalf("%s: %+v", u.Name(), s)
		}
	}
	began = time.Now()
	if n := len(h.Catalog().Items(catalog.Tool)); n != crowd*toolsEach {
		t.Errorf("%d tools", n)
	}
	made := time.Since(began)
	cold, bytes := listTools(t, g)
	warm, _ := listTools(t, g)
	t.Logf("all are ready after %v; the catalog is made in %v; a list of %d KB is answered in %v, and again in %v", took, made, bytes>>10, cold, warm)
	t.Logf("it has taken %.1f MB, stacks of %.1f MB and %d goroutines",
		float64(heap()-heapBefore)/(1<<20), float64(stacks()-stacksBefore)/(1<<20), runtime.NumGoroutine()-goroutines)
	return took
}

func stacks() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}

// listTools lists the tools through the gateway.
func listTools(t testing.TB, g *gateway.Gateway) (took time.Duration, bytes int) {
	t.Helper()
	began := time.Now()
	res, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
	if took = time.Since(began); err != nil {
		t.Fatal(err)
	}
	var out struct{ Tools []json.RawMessage }
	const status = 1 // the gateway's own tool
	if err := json.Unmarshal(res.Raw, &out); err != nil || len(out.Tools) != crowd*toolsEach+status {
		t.Fatal(len(out.Tools), err)
	}
	return took, len(res.Raw)
}
