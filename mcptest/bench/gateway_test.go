//go:build !race

package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// gatewayOver returns a gateway over upstreams of this process that are ready.
func gatewayOver(t testing.TB, servers ...*server.Server) *gateway.Gateway {
	return gatewayWithJournal(t, nil, servers...)
}

// gatewayWithJournal is gatewayOver with a recorder on the side of the servers. nil records
// nothing.
func gatewayWithJournal(t testing.TB, r *journal.Recorder, servers ...*server.Server) *gateway.Gateway {
	logger := slog.New(slog.DiscardHandler)
	options := hub.Options{Logger: logger}
	if r != nil {
		options.DialContext = func(ctx context.Context, name string) context.Context {
			return framesink.WithDialing(ctx, r.ServerConn(name))
		}
	}
	h := hub.New(&options)
	var definitions []hub.Definition
	for i, s := range servers {
		definitions = append(definitions, hub.Definition{Name: fmt.Sprintf("s%03d", i), Target: s})
	}
	h.Apply(definitions, "the benchmark begins")
	g := gateway.New(h, &gateway.Options{Logger: logger})
	t.Cleanup(func() { g.Close(); h.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if !h.Settle(ctx) || len(h.Catalog().Missing()) > 0 {
		t.Fatal("the upstreams are not ready")
	}
	return g
}

// overHTTP connects to a handler over loopback, in a revision.
func overHTTP(t testing.TB, h mcp.Handler, r mcp.Revision) *client.Client {
	return overRecordedHTTP(t, h, r, nil)
}

// overRecordedHTTP is overHTTP with a recorder. nil records nothing.
func overRecordedHTTP(t testing.TB, h mcp.Handler, r mcp.Revision, recorder *journal.Recorder) *client.Client {
	if recorder != nil {
		h = mcp.Chain(h, recorder.Middleware())
	}
	endpoint := streamable.Handler(h, nil)
	web := httptest.NewUnstartedServer(endpoint)
	if recorder != nil {
		web.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return framesink.WithServing(ctx, recorder.ClientConn())
		}
	}
	web.Start()
	own := httpClient()
	c := dial(t, web.URL, client.Options{HTTP: client.HTTP{Client: own}, Wire: client.Wire{Revision: r}, NoCache: true})
	t.Cleanup(func() {
		c.Close()
		_ = endpoint.Shutdown(context.Background())
		own.CloseIdleConnections()
		web.Close()
	})
	return c
}

// throughGateway returns a call of a built-in server through the gateway, and the same without it.
func throughGateway(t testing.TB, r mcp.Revision, recorder *journal.Recorder) (through, direct func()) {
	quiet := server.Options{Logger: slog.New(slog.DiscardHandler)}
	call := func(c *client.Client, tool string) func() {
		return func() {
			got, err := client.Call[string](context.Background(), c, tool, echo{"hello"})
			if err != nil || got != "hello" {
				t.Fatal(got, err)
			}
		}
	}
	through = call(overRecordedHTTP(t, gatewayWithJournal(t, recorder, everything.New(quiet)), r, recorder), "s000__echo")
	return through, call(overHTTP(t, everything.New(quiet), r), "echo")
}

// BenchmarkGateway measures a call of a built-in server through the gateway beside the same call
// without it, both over HTTP: the floor is the direct call.
func BenchmarkGateway(b *testing.B) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		through, direct := throughGateway(b, r, nil)
		b.Run(string(r)+"/serial", func(b *testing.B) { rounds(b, 4000, serially(through), serially(direct)) })
		b.Run(string(r)+"/64", func(b *testing.B) { rounds(b, 4000, inFlight(64, through), inFlight(64, direct)) })
	}
}

// BenchmarkGatewayJournal is BenchmarkGateway with the journal on, as in the running dowel.
func BenchmarkGatewayJournal(b *testing.B) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		recorder := journal.New(journal.Options{})
		b.Cleanup(recorder.Close)
		through, direct := throughGateway(b, r, recorder)
		b.Run(string(r)+"/serial", func(b *testing.B) { rounds(b, 4000, serially(through), serially(direct)) })
		b.Run(string(r)+"/64", func(b *testing.B) { rounds(b, 4000, inFlight(64, through), inFlight(64, direct)) })
	}
}

// TestAllocationsJournal checks that the journal takes at most one allocation for each of the four
// frames of a call.
func TestAllocationsJournal(t *testing.T) {
	const n, frames = 1000, 4
	recorder := journal.New(journal.Options{})
	t.Cleanup(recorder.Close)
	recorded, _ := throughGateway(t, mcp.LatestRevision, recorder)
	plain, _ := throughGateway(t, mcp.LatestRevision, nil)
	var added []float64
	for range 3 {
		serially(recorded)(n / 2) // connections and pools fill
		serially(plain)(n / 2)
		more, _ := perCall(func() { serially(recorded)(n); recorder.Flush() }, n)
		least, _ := perCall(func() { serially(plain)(n) }, n)
		added = append(added, more-least)
	}
	if extra := slices.Min(added); extra > frames {
		t.Errorf("the journal adds %.2f allocations to a call, at most %d are allowed", extra, frames)
	} else {
		t.Logf("the journal adds %.2f allocations to a call", extra)
	}
}

// TestAllocationsGateway compares the allocations that the gateway adds to a call with the figures
// measured at the last improvement.
func TestAllocationsGateway(t *testing.T) {
	for r, most := range map[mcp.Revision]float64{mcp.LatestRevision: 30, mcp.LatestLegacyRevision: 23} {
		t.Run(string(r), func(t *testing.T) {
			const n = 1000
			through, direct := throughGateway(t, r, nil)
			var added []float64
			for range 3 { // connections and pools have their own days
				serially(through)(n / 2) // pools and stacks fill
				serially(direct)(n / 2)
				more, _ := perCall(func() { serially(through)(n) }, n)
				least, _ := perCall(func() { serially(direct)(n) }, n)
				added = append(added, more-least)
			}
			if extra := slices.Min(added); extra > most {
				t.Errorf("the gateway adds %.2f allocations to a call, at most %.0f are allowed", extra, most)
			} else {
				t.Logf("the gateway adds %.2f allocations to a call", extra)
			}
		})
	}
}

// BenchmarkPlainGateway is for profiles.
func BenchmarkPlainGateway(b *testing.B) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		through, _ := throughGateway(b, r, nil)
		b.Run(string(r), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				through()
			}
		})
	}
}

const (
	upstreams = 200
	toolsEach = 20
)

// addTools adds tools of a usual size.
func addTools(s *server.Server, n int, name string) {
	for i := range n {
		server.Tool(s, fmt.Sprintf(name, i), "Searches issues and pull requests in repositories that the user can see. Supports qualifiers such as is:open and label:bug.",
			func(context.Context, search) (string, error) { return "", nil }, server.ToolOptions{Annotations: mcp.ReadOnly})
	}
}

// listsOf returns functions that list 4,000 tools: through the gateway with a warm catalog, and
// from one server that has all of them under the same names.
func listsOf(t testing.TB, connect func(mcp.Handler) *client.Client) (through, direct func()) {
	one := server.New("bench", "1", nil)
	var all []*server.Server
	for i := range upstreams {
		s := server.New("bench", "1", nil)
		addTools(s, toolsEach, "search_issues_%02d")
		addTools(one, toolsEach, fmt.Sprintf("s%03d__search_issues_%%02d", i))
		all = append(all, s)
	}
	list := func(c *client.Client, n int) func() {
		return func() {
			tools, err := client.All(c.Tools(context.Background()))
			if err != nil || len(tools) != n {
				t.Fatal(len(tools), err)
			}
		}
	}
	const status = 1 // the gateway's own tool
	return list(connect(gatewayOver(t, all...)), upstreams*toolsEach+status), list(connect(one), upstreams*toolsEach)
}

// BenchmarkGatewayList measures tools/list through the gateway beside tools/list of one server with
// the same tools.
func BenchmarkGatewayList(b *testing.B) {
	for medium, connect := range map[string]func(mcp.Handler) *client.Client{
		"memory": func(h mcp.Handler) *client.Client { return dial(b, h, client.Options{NoCache: true}) },
		"http":   func(h mcp.Handler) *client.Client { return overHTTP(b, h, mcp.LatestRevision) },
	} {
		through, direct := listsOf(b, connect)
		b.Run(medium, func(b *testing.B) { rounds(b, 5, serially(through), serially(direct)) })
	}
}
