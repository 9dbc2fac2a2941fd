package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// strictHandler fails the test if a client that has gone is logged as a problem.
type strictHandler struct {
	slog.Handler
	t *testing.T
}

func (strictHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h strictHandler) Handle(_ context.Context, r slog.Record) error {
	for a := range r.Attrs {
		if err, ok := a.Value.Any().(error); ok && errors.Is(err, context.Canceled) {
			h.t.Errorf("%s: %v", r.Message, err)
		}
	}
	return nil
}

// eras are a revision with sessions and one without.
var eras = []mcp.Revision{mcp.Revision20251125, mcp.LatestRevision}

// replicaServer is a server of a library user: the keys of the cluster are all that it gets.
type replicaServer struct {
	name    string
	cluster *cluster.Cluster
	server  *server.Server
	web     *httptest.Server

	closeOnce sync.Once
	endpoint  *streamable.Server
}

// startReplicas starts three replicas behind a balancer. add adds the items of one.
func startReplicas(t *testing.T, add func(*replicaServer)) (all []*replicaServer, front *balancer) {
	t.Helper()
	nats := natstest.Start(t, nil).ClientURL() + "/library"
	front = startBalancer(t)
	for n := range 3 {
		c, err := cluster.Open(t.Context(), nats, &cluster.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		r := &replicaServer{name: strconv.Itoa(n), cluster: c}
		r.server = server.New("library", "1", &server.Options{Keys: c.Keys(), Logger: quiet})
		add(r)
		r.endpoint = streamable.Handler(r.server, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(strictHandler{quiet.Handler(), t})}})
		r.web = httptest.NewUnstartedServer(r.endpoint)
		r.web.Config.ErrorLog = log.New(io.Discard, "", 0)
		r.web.Start()
		t.Cleanup(r.close)
		front.replicas = append(front.replicas, r.web.URL)
		all = append(all, r)
	}
	return all, front
}

// close ends a replica in order.
func (r *replicaServer) close() {
	r.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
		defer cancel()
		_ = r.server.Close()
		_ = r.endpoint.Shutdown(ctx)
		_ = r.cluster.Close()
		r.web.CloseClientConnections()
		r.web.Close()
	})
}

// balancer gives each request to the next replica, whatever session it belongs to.
type balancer struct {
	url string
	out *http.Transport

	mu       sync.Mutex
	replicas []string
	turn     int
	served   []served
	streams  map[int]context.CancelFunc // of the requests in flight, by their place in served
}

// served is a request and the replica that has got it.
type served struct {
	replica, method string
	isResumption    bool
}

func startBalancer(t *testing.T) *balancer {
	b := &balancer{out: &http.Transport{}, streams: map[int]context.CancelFunc{}}
	web := httptest.NewUnstartedServer(b)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	b.url = web.URL + "/mcp"
	t.Cleanup(func() { web.CloseClientConnections(); web.Close(); b.out.CloseIdleConnections() })
	return b
}

// ServeHTTP implements [http.Handler].
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	b.mu.Lock()
	to, err := url.Parse(b.replicas[b.turn%len(b.replicas)])
	b.turn++
	number := len(b.served)
	b.served = append(b.served, served{to.String(), r.Method, r.Header.Get("Last-Event-ID") != ""})
	b.streams[number] = cancel
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.streams, number)
	}()
	if err != nil {
		panic(err)
	}
	_ = http.NewResponseController(w).EnableFullDuplex()
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }, Transport: b.out, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// cut breaks the connections of all requests in flight with a method.
func (b *balancer) cut(method string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for number, cancel := range b.streams {
		if b.served[number].method == method {
			cancel()
		}
	}
}

// remove takes a replica out.
func (b *balancer) remove(r *replicaServer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = slices.DeleteFunc(b.replicas, func(url string) bool { return url == r.web.URL })
}

// resumptions returns the replicas that have got requests with a Last-Event-ID.
func (b *balancer) resumptions() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.served {
		if s.isResumption {
			all = append(all, s.replica)
		}
	}
	return all
}

// dial connects a client of a revision that answers each question with a name.
func (b *balancer) dial(t *testing.T, revision mcp.Revision) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), b.url, &client.Options{Logger: quiet,
		Wire: client.Wire{Revision: revision},
		Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"Ada"}`)}, nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// call calls a tool that returns a text.
func call(t *testing.T, c *client.Client, tool string, opts ...client.CallOptions) string {
	t.Helper()
	text, err := client.Call[string](t.Context(), c, tool, nil, opts...)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return text
}

// inEras runs a test with a client of each era.
func inEras(t *testing.T, front *balancer, test func(t *testing.T, c *client.Client)) {
	for _, revision := range eras {
		t.Run(string(revision), func(t *testing.T) { test(t, front.dial(t, revision)) })
	}
}
