package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// end is one side of the gateway: a revision and a transport.
type end struct {
	revision mcp.Revision
	http     bool // else stdio; HTTP+SSE in 2024-11-05
}

func (e end) String() string {
	switch {
	case !e.http:
		return string(e.revision) + " stdio"
	case e.revision == mcp.Revision20241105:
		return string(e.revision) + " sse"
	}
	return string(e.revision) + " http"
}

func (e end) before(r mcp.Revision) bool { return e.revision < r }

func ends() (all []end) {
	for _, r := range mcp.Revisions() {
		all = append(all, end{r, false}, end{r, true})
	}
	return all
}

// TestMatrix connects clients of each revision and transport through the gateway to upstreams of
// each revision and transport, and uses each feature over each pair. It checks all frames against
// the schema of their revision. The table impossible lists what a pair cannot do, and must have no
// other rows.
func TestMatrix(t *testing.T) {
	used := &usage{of: map[string]int{}}
	t.Cleanup(func() { used.check(t) })
	for _, up := range ends() {
		t.Run(up.String(), func(t *testing.T) {
			t.Parallel()
			front := newFront(t, up)
			for _, down := range ends() {
				t.Run(down.String(), func(t *testing.T) {
					p := newPair(t, front, up, down)
					for _, f := range features {
						p.try(t, f, used)
					}
				})
			}
		})
	}
}

// gatewayPage is how many things a page of the gateway's lists holds.
const gatewayPage = 16

// front is a gateway over one upstream, with a web server.
type front struct {
	gateway *gateway.Gateway
	web     *httptest.Server
}

func newFront(t *testing.T, up end) *front {
	h := hubOf(t, hub.Options{}, hub.Definition{
		Name: "up", Target: target(t, up), Options: client.Options{Wire: client.Wire{Revision: up.revision, Tap: mcptest.ClientTap(t)}},
	})
	settle(t, h)
	if s := h.Upstream("up").State(); s.Status != hub.Ready {
		t.Fatal(s.Status, s.Err)
	}
	f := &front{gateway: gatewayOf(t, h, gateway.Options{PageSize: gatewayPage})}
	f.web = serveHTTP(t, f.gateway)
	return f
}

// serveHTTP serves a handler under /mcp and /sse.
func serveHTTP(t *testing.T, h mcp.Handler) *httptest.Server {
	quietly := transport.ServerOptions{Logger: quiet}
	now, then := streamable.Handler(h, &streamable.Options{ServerOptions: quietly}), sse.Handler(h, &streamable.Options{ServerOptions: quietly})
	mux := newMux(map[string]handler{"/mcp": now, "/sse": then})
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = now.Shutdown(ctx)
		_ = then.Shutdown(ctx)
		web.Close()
	})
	return web
}

// target returns the upstream of the matrix with the revision and transport of an end.
func target(t *testing.T, e end) any {
	if !e.http {
		return child("upstream")
	}
	s := newUpstream()
	t.Cleanup(func() { s.Close() })
	return reach(serveHTTP(t, s), e)
}

// reach returns the target to dial for a web server.
func reach(web *httptest.Server, e end) any {
	if e.revision == mcp.Revision20241105 {
		return sse.URL{URL: web.URL + "/sse"}
	}
	return web.URL + "/mcp"
}

// pair is a client and an upstream on two sides of the gateway.
type pair struct {
	up, down end
	older    mcp.Revision // the older revision of the two
	c        *client.Client
	poor     *client.Client // the client can answer no questions
	user     *user
	watch    *client.Watch
	changes  chan client.Change
}

func newPair(t *testing.T, f *front, up, down end) *pair {
	p := &pair{up: up, down: down, older: min(up.revision, down.revision), user: &user{action: mcp.ElicitAccept}}
	p.c = p.dial(t, f, p.user.options())
	p.poor = p.dial(t, f, client.Options{})
	var err error
	p.watch, err = p.c.Watch(t.Context(), mcp.SubscriptionFilter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{watchedURI},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.changes = make(chan client.Change, 100)
	var reading sync.WaitGroup
	reading.Go(func() {
		for change, err := range p.watch.Changes() {
			if err != nil {
				t.Error(err)
				return
			}
			p.changes <- change
		}
	})
	t.Cleanup(func() { p.watch.Close(); reading.Wait() })
	return p
}

const watchedURI = "test://watched-resource"

// dial connects a client to the gateway as its end says.
func (p *pair) dial(t *testing.T, f *front, o client.Options) *client.Client {
	o.Wire.Revision, o.Wire.Tap, o.Logger, o.Wire.Verdicts = p.down.revision, mcptest.ClientTap(t), quiet, new(transport.Verdicts)
	if p.down.http {
		return dial(t, reach(f.web, p.down), o)
	}
	return dial(t, pipe(t, f.gateway, stdio.Options{}), o)
}

// pipe serves a handler over a stream, as to a parent process, and returns the other end.
func pipe(t testing.TB, h mcp.Handler, o stdio.Options) net.Conn {
	near, far := net.Pipe()
	served := make(chan struct{})
	if o.Logger == nil {
		o.Logger = quiet
	}
	go func() {
		defer close(served)
		_ = stdio.ServeStream(context.Background(), far, h, o)
	}()
	t.Cleanup(func() { near.Close(); <-served })
	return near
}

// user answers questions that the gateway passes on.
type user struct {
	mu     sync.Mutex
	action mcp.ElicitAction
	asked  []string
}

func (u *user) note(what string) mcp.ElicitAction {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, what)
	return u.action
}

// does changes how the user answers, and returns a function that undoes the change.
func (u *user) does(action mcp.ElicitAction) (back func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.action
	u.action = action
	return func() { u.does(was) }
}

func (u *user) options() client.Options {
	return client.Options{
		Answers: client.Answers{
			ElicitURL: true, SampleTools: true, Roots: client.FixedRoots(mcp.Root{URI: "file:///home", Name: "home"}),
			Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
				res := &mcp.ElicitResult{Action: u.note(q.Message)}
				if res.Action == mcp.ElicitAccept && q.Mode != mcp.ElicitURL {
					res.Content = []byte(`{"username":"ada","email":"ada@example.com","name":"Ada","color":"blue","ok":true,"context":"tea"}`)
				}
				return res, nil
			},
			Sample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				text := p.Messages[0].Content[0].Text
				u.note(text)
				return &mcp.CreateMessageResult{
					Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{mcp.Text(fmt.Sprint("re: ", text, " with ", len(p.Tools), " tools"))},
				}, nil
			},
		},
	}
}

// try uses one feature over the pair, which must work or fail as the table says.
func (p *pair) try(t *testing.T, f feature, used *usage) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := f.use(ctx, p)
	at := slices.IndexFunc(impossible, func(i impossibility) bool { return slices.Contains(i.features, f.name) && i.in(p) })
	switch {
	case at < 0 && err != nil:
		t.Errorf("%s: %v", f.name, err)
	case at >= 0 && err == nil:
		t.Errorf("%s works, and is said to be impossible by %s", f.name, impossible[at].page)
	case at >= 0 && !impossible[at].how.MatchString(err.Error()):
		t.Errorf("%s fails, as it must by %s, but otherwise than in /%s/: %v", f.name, impossible[at].page, impossible[at].how, err)
	}
	if at >= 0 {
		used.note(at)
	}
}
