package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/floor/floorhttp"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
}

// dowelOverHTTP connects to a server over loopback, in a revision.
func dowelOverHTTP(b testing.TB, r mcp.Revision) *client.Client {
	return dowelBehind(b, r, func(h http.Handler) http.Handler { return h })
}

// streamOverHTTP is dowelOverHTTP for a client that takes calls' answers as event streams only.
func streamOverHTTP(b testing.TB, r mcp.Revision) *client.Client {
	return dowelBehind(b, r, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost {
				req.Header["Accept"] = streamAlone
			}
			h.ServeHTTP(w, req)
		})
	})
}

var streamAlone = []string{"text/event-stream"}

func dowelBehind(b testing.TB, r mcp.Revision, front func(http.Handler) http.Handler) *client.Client {
	endpoint := streamable.Handler(echoServer(), nil)
	web := httptest.NewServer(front(endpoint))
	own := httpClient()
	c := dial(b, web.URL, client.Options{HTTP: client.HTTP{Client: own}, Wire: client.Wire{Revision: r}})
	b.Cleanup(func() {
		c.Close()
		_ = endpoint.Shutdown(b.Context())
		own.CloseIdleConnections()
		web.Close()
	})
	return c
}

func floorOverHTTP(b testing.TB) *floorhttp.Poster {
	web := httptest.NewServer(floorhttp.Handler())
	own := httpClient()
	b.Cleanup(func() { own.CloseIdleConnections(); web.Close() })
	return &floorhttp.Poster{URL: web.URL, Client: own}
}

func BenchmarkHTTP(b *testing.B) {
	large := strings.Repeat("All work and no play. ", 1<<20/22)
	f := floorOverHTTP(b)
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		c := dowelOverHTTP(b, r)
		for _, size := range []struct {
			name, message string
			n             int
		}{{"small", "hello", 4000}, {"1MiB", large, 40}} {
			d, least := func() { callEcho(b, c, size.message) }, func() { f.Call(size.message) }
			b.Run(string(r)+"/"+size.name+"/serial", func(b *testing.B) { rounds(b, size.n, serially(d), serially(least)) })
			if size.name == "small" {
				b.Run(string(r)+"/"+size.name+"/64", func(b *testing.B) { rounds(b, size.n, inFlight(64, d), inFlight(64, least)) })
			}
		}
	}
}

// BenchmarkStream measures an event-stream answer beside one of JSON.
func BenchmarkStream(b *testing.B) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		document, stream := dowelOverHTTP(b, r), streamOverHTTP(b, r)
		b.Run(string(r), func(b *testing.B) {
			rounds(b, 4000, serially(func() { callEcho(b, stream, "hello") }), serially(func() { callEcho(b, document, "hello") }))
		})
	}
}

// BenchmarkPlainHTTP is for profiles.
func BenchmarkPlainHTTP(b *testing.B) {
	c := dowelOverHTTP(b, mcp.LatestRevision)
	b.ReportAllocs()
	for b.Loop() {
		callEcho(b, c, "hello")
	}
}

func BenchmarkPlainHTTPFloor(b *testing.B) {
	f := floorOverHTTP(b)
	b.ReportAllocs()
	for b.Loop() {
		f.Call("hello")
	}
}
