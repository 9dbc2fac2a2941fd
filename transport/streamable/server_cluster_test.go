package streamable_test

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// clusterReplica is a server with its part of a cluster.
type clusterReplica struct {
	url      string
	endpoint *streamable.Server
	cluster  *cluster.Cluster
	server   *server.Server
	steps    chan string // each lets the tool "steps" report it; "end" ends the call
	ended    chan error  // has the cause of the end of each call of the tool "steps"
}

// eventsOf returns the event store of a replica, in place of its cluster.
type eventsOf func(*cluster.Cluster) streamable.EventStore

// startReplicas starts replicas of one server.
func startReplicas(t *testing.T, n int, events ...eventsOf) (all []*clusterReplica, nats *natsserver.Server) {
	nats = natstest.Start(t, nil)
	for range n {
		c, err := cluster.Open(t.Context(), cluster.Options{URL: nats.ClientURL(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		r := &clusterReplica{cluster: c, steps: make(chan string), ended: make(chan error, 10)}
		r.server = server.New("replica", "1", &server.Options{Keys: c.Keys()})
		server.Tool(r.server, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
			who, err := server.Ask[person](ctx, "who", "Who?")
			return who.Name, err
		})
		server.Tool(r.server, "steps", "Reports steps.", func(ctx context.Context, _ struct{}) (string, error) {
			for {
				select {
				case text := <-r.steps:
					if text == "end" {
						r.ended <- nil
						return "done", nil
					}
					server.Log(ctx).Info(text)
				case <-ctx.Done():
					r.ended <- context.Cause(ctx)
					return "", ctx.Err()
				}
			}
		})
		opts := streamable.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(slog.DiscardHandler)}}
		for _, of := range events {
			opts.Sessions.Events = of(c)
		}
		endpoint, web := serve(t, r.server, opts)
		r.endpoint, r.url = endpoint, web.URL+"/mcp"
		all = append(all, r)
	}
	return all, nats
}

// An answer that reaches another replica gets to the asking replica.
func TestAnswerThroughCluster(t *testing.T) {
	all, _ := startReplicas(t, 2)
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	lines, question := beginAsk(t, all[0].url, in)
	answer := func(id string) int {
		return send(t, "POST", all[1].url, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{"name":"ada"}}}`, in...).status
	}
	if status := answer(`"AAAAAAAAAA-1"`); status != 400 {
		t.Errorf("an answer for a replica that has ended: %d", status)
	}
	if status := answer(question); status != 202 {
		t.Errorf("the answer: %d", status)
	}
	if got := until(t, lines, "data:"); !strings.Contains(got, "ada") {
		t.Errorf("the result: %s", got)
	}
	if status := answer(question); status != 400 {
		t.Errorf("a second answer: %d", status)
	}
}

const stepsCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"steps","arguments":{}}}`

// beginSteps calls the tool "steps" at a replica, lets it report a step, and cuts the connection.
// It returns the id of the event.
func beginSteps(t *testing.T, r *clusterReplica, in []string) (last string) {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "POST", r.url, strings.NewReader(stepsCall))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(in); i += 2 {
		request.Header.Set(in[i], in[i+1])
	}
	own := &http.Transport{}
	go func() { r.steps <- "one" }()
	resp, err := own.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	body, text := make([]byte, 4096), ""
	for !strings.Contains(text, `"one"`) || !strings.HasSuffix(text, "\n\n") {
		n, err := resp.Body.Read(body)
		if text += string(body[:n]); err != nil {
			t.Fatal(err, text)
		}
	}
	cut()
	resp.Body.Close()
	own.CloseIdleConnections()
	at := strings.LastIndex(text, "id: ")
	last, _, _ = strings.Cut(text[at+len("id: "):], "\n")
	return last
}

// A client whose connection was lost continues at another replica. It misses no event and gets none
// twice, also from the time without a connection.
func TestResumeThroughCluster(t *testing.T) {
	all, _ := startReplicas(t, 2)
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	last := beginSteps(t, all[0], in)
	all[0].steps <- "two"
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	if got := until(t, lines, "data:"); !strings.Contains(got, `"two"`) {
		t.Errorf("after the connection was lost: %s", got)
	}
	for i := range 20 {
		step := "more" + strconv.Itoa(i)
		all[0].steps <- step
		if got := until(t, lines, "data:"); !strings.Contains(got, `"`+step+`"`) {
			t.Fatalf("got %s, want %s", got, step)
		}
	}
	all[0].steps <- "end"
	if got := until(t, lines, "data:"); !strings.Contains(got, "done") {
		t.Errorf("the result: %s", got)
	}
	if _, isOpen := <-lines; isOpen {
		<-lines // the empty line after the event
	}
	cut()
	again, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	if got := until(t, again, "data:"); !strings.Contains(got, `"two"`) {
		t.Errorf("once more, after the end: %s", got)
	}
}

// If the replica that runs a call ends, a client that has resumed at another gets an error at once.
func TestOwnerGone(t *testing.T) {
	all, _ := startReplicas(t, 2)
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	last := beginSteps(t, all[0], in)
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	all[0].steps <- "two"
	until(t, lines, "data:")
	all[0].cluster.Close() // as if the process had been killed, for the others
	if got := until(t, lines, "data:"); !strings.Contains(got, `"id":7`) || !strings.Contains(got, "-32603") || !strings.Contains(got, "has ended before it answered") {
		t.Errorf("after the end of the replica: %s", got)
	}
	late, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	until(t, late, "data:") // the second step
	if got := until(t, late, "data:"); !strings.Contains(got, "has ended before it answered") {
		t.Errorf("for a client that resumes later: %s", got)
	}
	all[0].steps <- "end"
}

// A subscription and its end reach the replica that carries the session stream, though the client
// sends nothing else there.
func TestSubscriptionThroughCluster(t *testing.T) {
	all, _ := startReplicas(t, 2)
	const uri = "test://watched"
	for _, r := range all {
		server.Resource(r.server, uri, "Changes.", func(context.Context, struct{}) (string, error) { return "", nil }, server.ResourceOptions{Name: "watched"})
	}
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	lines, cut := stream(t, all[0].url, in...)
	defer cut()
	set := func(method string) {
		if got := send(t, "POST", all[1].url, `{"jsonrpc":"2.0","id":1,"method":"resources/`+method+`","params":{"uri":"`+uri+`"}}`, in...); got.status != 200 {
			t.Fatalf("%s: %d %s", method, got.status, got.body)
		}
	}
	// heard reports whether an update is told before a change of the list of tools.
	changes := 0
	heard := func() bool {
		all[0].server.Updated(uri)
		changes++
		server.Tool(all[0].server, "marker"+strconv.Itoa(changes), "New.", func(context.Context, struct{}) (string, error) { return "", nil })
		updated := false
		for {
			switch got := until(t, lines, "data:"); {
			case strings.Contains(got, "resources/updated"):
				updated = true
			case strings.Contains(got, "tools/list_changed"):
				return updated
			}
		}
	}
	began := time.Now()
	set("subscribe")
	polltest.Until(t, "an update", heard)
	set("unsubscribe")
	polltest.Until(t, "no update", func() bool { return !heard() })
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("the settings took %v: a replica that is not told loads them once a minute", took)
	}
}

// The end of a session and a cancellation are known at every replica.
func TestEndThroughCluster(t *testing.T) {
	all, _ := startReplicas(t, 2)
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "POST", all[1].url, pingBody, in...); got.status != 200 {
		t.Fatalf("the other replica: %d %s", got.status, got.body)
	}
	beginSteps(t, all[0], in)
	send(t, "POST", all[1].url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, in...)
	if err := <-all[0].ended; err == nil {
		t.Error("the call was not cancelled")
	}
	if got := send(t, "DELETE", all[1].url, "", in...); got.status != 204 {
		t.Errorf("DELETE: %d %s", got.status, got.body)
	}
	for _, r := range all {
		if got := send(t, "POST", r.url, pingBody, in...); got.status != 404 {
			t.Errorf("after the end: %d %s", got.status, got.body)
		}
	}
}

// A change that happens while the client has no stream is there when it resumes at another replica.
// While the subscription gets another goroutine, the change waits before it is stored.
func TestChangesThroughCluster(t *testing.T) {
	for _, delay := range []time.Duration{0, 20 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) { changeThroughCluster(t, delay) })
	}
}

// changeThroughCluster makes a change some time after the client has lost its stream.
func changeThroughCluster(t *testing.T, delay time.Duration) {
	all, _ := startReplicas(t, 2)
	in := inSession(open(t, all[0].url, mcp.Revision20251125), mcp.Revision20251125)
	lines, cut := stream(t, all[0].url, in...)
	id, _ := strings.CutPrefix(until(t, lines, "id:"), "id:")
	last := strings.TrimSpace(id)
	cut()
	time.Sleep(delay)
	addTool(all[0], "first")
	polltest.Until(t, "the change is stored", func() bool {
		events, err := all[1].cluster.After(t.Context(), last)
		if err != nil {
			return false
		}
		for range events {
			return true
		}
		return false
	})
	resumed, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	if got := until(t, resumed, "data:"); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("the missed change: %s", got)
	}
	addTool(all[1], "second")
	if got := until(t, resumed, "data:"); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("the next change: %s", got)
	}
}

// Without the cluster, requests of sessions get 503 at once, and modern requests are served.
func TestClusterUnreachable(t *testing.T) {
	all, nats := startReplicas(t, 1)
	r := all[0]
	in := inSession(open(t, r.url, mcp.Revision20251125), mcp.Revision20251125)
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !r.cluster.State().Connected })
	if got := send(t, "POST", r.url, pingBody, in...); got.status != 503 {
		t.Errorf("a request of a session: %d %s", got.status, got.body)
	}
	if got := send(t, "POST", r.url, initializeBody(mcp.Revision20251125, ""), in[2:]...); got.status != 503 {
		t.Errorf("initialize: %d %s", got.status, got.body)
	}
	if got := send(t, "POST", r.url, modernBody("tools/list", ""), modernFields("tools/list")...); got.status != 200 {
		t.Errorf("a modern request: %d %s", got.status, got.body)
	}
}
