package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	"github.com/dowel-mcp/dowel/bench/dowel"
	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// The contestants of gateways. All of them are dowel, with the same client and server; they differ
// in the HTTP handler between the two.
const (
	direct  = "direct"
	proxy   = "ReverseProxy"
	through = "gateway"
)

// gateways measures a call through dowel's gateway to a server in the same process, as a built-in
// one, and the same call without the gateway. A call through httputil.ReverseProxy shows the least
// that a hop costs: like the gateway, it adds a second exchange over HTTP.
func gateways() []Item {
	var overHTTP, inMemory []Item // each fills a table of its own
	for _, era := range []peer.Era{peer.Modern, peer.Legacy} {
		for _, width := range []int{1, 64} {
			flight := "one at a time"
			if width > 1 {
				flight = fmt.Sprintf("%d in flight", width)
			}
			overHTTP = append(overHTTP, Item{
				Name:        fmt.Sprintf("gateway/%s/%d", era, width),
				Table:       "A small call over HTTP through dowel's gateway",
				Rows:        []Row{{string(era) + ", " + flight, Time, Bound{Base: 1.1}}},
				Contestants: []string{direct, proxy, through},
				Measure: func(ctx context.Context, contestant string, o Options) (Result, error) {
					return measureGateway(ctx, contestant, era, width, o.withDefaults())
				},
			})
			inMemory = append(inMemory, Item{
				Name:        fmt.Sprintf("gateway/memory/%s/%d", era, width),
				Table:       "A small call in the process, to a built-in server through dowel's gateway",
				Rows:        []Row{{string(era) + ", " + flight, Time, Bound{}}},
				Contestants: []string{direct, through},
				Measure: func(ctx context.Context, contestant string, o Options) (Result, error) {
					return measureBuiltIn(ctx, contestant, era, width, o.withDefaults())
				},
			})
		}
	}
	return append(overHTTP, inMemory...)
}

// measureGateway measures echo calls through the contestant's handler, width of them in flight.
func measureGateway(ctx context.Context, contestant string, era peer.Era, width int, o Options) (Result, error) {
	s := dowel.Peer{}.NewServer(1).(*dowel.Server)
	h, tool, end, err := newHop(ctx, contestant, s)
	if err != nil {
		return nil, err
	}
	defer end()
	served := httptest.NewServer(h)
	defer served.Close()
	own := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	defer own.CloseIdleConnections()
	return repeatEcho(ctx, served.URL+"/mcp", tool, width, o, &client.Options{HTTP: client.HTTP{Client: own}, Wire: client.Wire{Revision: mcp.Revision(era)}, NoCache: true})
}

// measureBuiltIn measures echo calls in this process, to the server or through a gateway over it.
func measureBuiltIn(ctx context.Context, contestant string, era peer.Era, width int, o Options) (Result, error) {
	s := dowel.Peer{}.NewServer(1).(*dowel.Server)
	var target any = s.Server
	tool := "echo"
	if contestant == through {
		g, end, err := newGateway(ctx, s)
		if err != nil {
			return nil, err
		}
		defer end()
		target, tool = g, "s__echo"
	}
	return repeatEcho(ctx, target, tool, width, o, &client.Options{Wire: client.Wire{Revision: mcp.Revision(era)}, NoCache: true})
}

// repeatEcho measures echo calls to a target of [client.Dial], width of them in flight.
func repeatEcho(ctx context.Context, target any, tool string, width int, o Options, options *client.Options) (Result, error) {
	c, err := client.Dial(ctx, target, options)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return o.repeat(width, here, func() error {
		got, err := client.Call[string](context.Background(), c, tool, peer.Echo{Message: "hello"})
		if err == nil && got != "hello" {
			err = fmt.Errorf("the answer is %q", got)
		}
		return err
	})
}

// newHop returns the contestant's handler for requests to s, the name under which it offers the
// server's tool, and a function that stops it.
func newHop(ctx context.Context, contestant string, s *dowel.Server) (h http.Handler, tool string, end func(), err error) {
	if contestant == through {
		g, end, err := newGateway(ctx, s)
		return streamable.Handler(g, nil), "s__echo", end, err
	}
	h, err = s.Handler(peer.Modern, false)
	if contestant == direct || err != nil {
		return h, "echo", func() {}, err
	}
	behind := httptest.NewServer(h)
	to, err := url.Parse(behind.URL)
	p := httputil.NewSingleHostReverseProxy(to)
	p.Transport = &http.Transport{MaxIdleConnsPerHost: conns}
	return p, "echo", behind.Close, err
}

// newGateway returns a gateway over s, and a function that stops it.
func newGateway(ctx context.Context, s *dowel.Server) (*gateway.Gateway, func(), error) {
	quiet := slog.New(slog.DiscardHandler)
	all := hub.New(&hub.Options{Logger: quiet})
	all.Apply([]hub.Definition{{Name: "s", Target: s.Server}}, "the measurement begins")
	g := gateway.New(all, &gateway.Options{Logger: quiet})
	end := func() { g.Close(); all.Close() }
	if !all.Settle(ctx) || len(all.Catalog().Missing()) > 0 {
		end()
		return nil, nil, errors.New("the server behind the gateway is not ready")
	}
	return g, end, nil
}
