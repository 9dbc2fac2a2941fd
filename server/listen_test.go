package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// subscription is a listen request that runs.
type subscription struct {
	*peer
	cancel context.CancelCauseFunc
	ended  chan struct{}
	res    *mcp.Result
	err    error
}

func listen(t *testing.T, s *server.Server, principal, filter string, p *peer) *subscription {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	sub := &subscription{peer: p, cancel: cancel, ended: make(chan struct{})}
	req := as(principal, request(mcp.MethodListen, `{"notifications":`+filter+`}`))
	req.Peer = p
	go func() {
		defer close(sub.ended)
		sub.res, sub.err = s.ServeMCP(ctx, req)
	}()
	t.Cleanup(func() { cancel(nil); <-sub.ended })
	return sub
}

// offering returns a server of every kind.
func offering(opts ...server.Options) *server.Server {
	s := newServer(opts...)
	server.Tool(s, "first", "", none)
	server.Prompt(s, "first", "", func(context.Context, struct{}) (string, error) { return "", nil })
	server.Resource(s, "x://first", "", func(context.Context, struct{}) (string, error) { return "", nil })
	return s
}

const all = `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["x://a","y://dir/"]}`

func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering()
		everything := listen(t, s, "", all, &peer{})
		tools := listen(t, s, "", `{"toolsListChanged":true,"promptsListChanged":false}`, &peer{})
		synctest.Wait()
		want(t, string(everything.changes[0].Params), `{"notifications":`+all+`}`)
		want(t, string(tools.changes[0].Params), `{"notifications":{"toolsListChanged":true}}`)

		add(t, s, "one")
		time.Sleep(time.Second)
		server.Prompt(s, "one", "", func(context.Context, struct{}) (string, error) { return "", nil })
		time.Sleep(time.Second)
		server.Resource(s, "x://{a}", "", func(context.Context, struct {
			A string `uri:"a"`
		}) (string, error) {
			return "", nil
		})
		time.Sleep(time.Second)
		for _, uri := range []string{"x://a", "x://ab", "y://dir/file", "y://dir/sub/file?q=/x", "y://dir", "y://dir2/x", "x://a/b"} {
			s.Updated(uri)
		}
		synctest.Wait()
		s.Remove(server.KindTool, "one")
		s.Remove(server.KindTool, "one") // none left
		synctest.Wait()
		want(t, strings.Join(everything.methods(), ", "), "subscriptions/acknowledged, tools/list_changed, prompts/list_changed, resources/list_changed, "+
			"resources/updated x://a, resources/updated y://dir/file, resources/updated y://dir/sub/file?q=/x, resources/updated x://a/b, tools/list_changed")
		want(t, strings.Join(tools.methods(), ", "), "subscriptions/acknowledged, tools/list_changed, tools/list_changed")

		gone := errors.New("the client left")
		tools.cancel(gone)
		<-tools.ended
		if tools.err != gone || tools.res != nil {
			t.Errorf("%v, %v", tools.res, tools.err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-everything.ended
		want(t, unescapeString(t, everything.res, everything.err), `{}`)
		_ = s.Close()
		late := listen(t, s, "", all, &peer{})
		<-late.ended
		want(t, unescapeString(t, late.res, late.err), `{}`)
		want(t, fmt.Sprint(late.methods()), "[subscriptions/acknowledged]")
		want(t, call(t, s, "first", `{}`), `{"content":[]}`) // calls still work
	})
}

// TestListenBurst makes few notifications of many changes.
func TestListenBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering()
		sub := listen(t, s, "", `{"toolsListChanged":true,"resourceSubscriptions":["x://a"]}`, &peer{})
		synctest.Wait()
		for n := range 500 {
			add(t, s, fmt.Sprint("t", n))
		}
		time.Sleep(time.Second)
		if got := sub.methods(); len(got) > 3 {
			t.Errorf("%d notifications", len(got))
		}
		before := len(sub.methods())
		add(t, s, "after")
		synctest.Wait() // no time passes
		if len(sub.methods()) != before+1 {
			t.Error("a change after a quiet time waits")
		}
		add(t, s, "soon")
		synctest.Wait()
		if len(sub.methods()) != before+1 {
			t.Error("a change right after another does not wait")
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if len(sub.methods()) != before+2 {
			t.Error("a change was lost")
		}
	})
}

// TestSlowPeer checks that a slow peer delays neither the source of changes nor another listener,
// and costs bounded memory.
func TestSlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering()
		slow := listen(t, s, "", `{"toolsListChanged":true,"resourceSubscriptions":["x://"]}`, &peer{stall: make(chan struct{})})
		quick := listen(t, s, "", `{"toolsListChanged":true}`, &peer{})
		synctest.Wait()
		add(t, s, "one") // the slow one is stuck with it
		synctest.Wait()
		for n := range 5000 {
			s.Updated(fmt.Sprint("x://", n))
		}
		time.Sleep(time.Second)
		add(t, s, "two")
		synctest.Wait()
		want(t, fmt.Sprint(quick.methods()), "[subscriptions/acknowledged tools/list_changed tools/list_changed]")
		close(slow.stall)
		time.Sleep(time.Second)
		got := slow.methods()
		if len(got) != 1+1+1024+1+1 { // beyond 1,024 the directory itself
			t.Errorf("%d notifications", len(got))
		}
		if !slices.Contains(got, "resources/updated x://") || !slices.Contains(got, "resources/updated x://1023") || slices.Contains(got, "resources/updated x://1024") {
			t.Errorf("got %v", got)
		}
	})
}

func TestDeadPeer(t *testing.T) {
	s := offering()
	req := request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`)
	req.Peer = deadPeer{}
	if _, err := s.ServeMCP(t.Context(), req); !errors.Is(err, mcp.ErrPeerGone) {
		t.Errorf("got %v", err)
	}
	req.Peer = nil
	wantPart(t, serve(t, s, req), "error -32603")
	wantPart(t, serve(t, s, request(mcp.MethodListen, `{"notifications":1}`)), "error -32602: subscriptions/listen: ")
}

type deadPeer struct{}

func (deadPeer) Notify(context.Context, mcp.Notification) error { return mcp.ErrPeerGone }
func (deadPeer) Change(context.Context, mcp.Notification) error { return mcp.ErrPeerGone }

func TestListenAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		add(t, s, "t")
		sub := listen(t, s, "", all, &peer{})
		synctest.Wait()
		want(t, string(sub.changes[0].Params), `{"notifications":{"toolsListChanged":true}}`)

		uris := make([]string, 5000)
		for i := range uris {
			uris[i] = fmt.Sprint("x://", i/2*2)
		}
		uris[0] = ""
		raw, err := json.Marshal(uris)
		if err != nil {
			t.Fatal(err)
		}
		many := listen(t, offering(), "", `{"resourceSubscriptions":`+string(raw)+`}`, &peer{})
		synctest.Wait()
		var ack mcp.ListenParams
		if err := mcp.Decode(many.changes[0].Params, &ack); err != nil || len(ack.Notifications.ResourceSubscriptions) != 2500 {
			t.Errorf("%d, %v", len(ack.Notifications.ResourceSubscriptions), err)
		}
	})
}

func TestListenVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering(server.Options{Visible: scoped})
		hidden := func(context.Context, struct {
			A string `uri:"a"`
		}) (string, error) {
			return "", nil
		}
		server.Resource(s, "secret://{a}", "", hidden)
		server.Resource(s, "hidden://secret/{a}", "", hidden)
		filter := `{"toolsListChanged":true,"resourceSubscriptions":["x://secret","x://first","secret://1","hidden://secret/1","n://one"]}`
		guest, admin := listen(t, s, "", filter, &peer{}), listen(t, s, "admin", filter, &peer{})
		synctest.Wait()
		want(t, string(guest.changes[0].Params), `{"notifications":`+filter+`}`) // tells nothing about what there is
		add(t, s, "secret1")
		time.Sleep(time.Second)
		s.Remove(server.KindTool, "secret1")
		time.Sleep(time.Second)
		for _, uri := range []string{"x://secret", "x://first", "secret://1", "hidden://secret/1", "n://one"} {
			s.Updated(uri)
		}
		time.Sleep(time.Second)
		add(t, s, "open")
		time.Sleep(time.Second)
		if err := s.Add(item(t, "secret2"), item(t, "open2")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, strings.Join(guest.methods()[1:], ", "), "resources/updated x://first, resources/updated n://one, tools/list_changed, tools/list_changed")
		want(t, strings.Join(admin.methods()[1:], ", "), "tools/list_changed, tools/list_changed, resources/updated x://secret, resources/updated x://first, "+
			"resources/updated secret://1, resources/updated hidden://secret/1, resources/updated n://one, tools/list_changed, tools/list_changed")
		time.Sleep(time.Second)
		s.ListChanged(server.KindTool) // whatever it was, it may concern all clients
		synctest.Wait()
		wantPart(t, guest.methods()[len(guest.methods())-1], "tools/list_changed")
		if n := len(guest.methods()); n != 6 {
			t.Errorf("%d notifications", n)
		}
	})
}

func TestExtensionChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(server.Options{Extensions: []mcp.Extension{{ID: "x/tasks", ListenFilters: map[string]string{"taskIds": "notifications/tasks"}}}})
		one := listen(t, s, "ann", `{"taskIds":["1"],"other":true}`, &peer{stall: make(chan struct{})})
		two := listen(t, s, "", `{"taskIds":["2"]}`, &peer{})
		none := listen(t, s, "", `{}`, &peer{})
		synctest.Wait()
		want(t, string(one.changes[0].Params), `{"notifications":{"taskIds":["1"]}}`)
		change := mcp.Notification{Method: "notifications/tasks", Params: json.RawMessage(`{"n":0}`)}
		s.Change(change, func(p mcp.Principal, filter json.RawMessage) bool { return p.ID == "ann" && string(filter) == `["1"]` })
		synctest.Wait()
		for n := range 2000 {
			change.Params = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n+1))
			s.Change(change, func(p mcp.Principal, filter json.RawMessage) bool { return string(filter) == `["1"]` })
		}
		s.Change(mcp.Notification{Method: "notifications/other"}, nil)
		close(one.stall)
		synctest.Wait()
		got := one.changes
		if len(got) != 1+1+1024 || string(got[2].Params) != `{"n":977}` || string(got[len(got)-1].Params) != `{"n":2000}` {
			t.Errorf("%d changes, %s … %s", len(got), got[2].Params, got[len(got)-1].Params)
		}
		s.Change(change, nil)
		synctest.Wait()
		want(t, fmt.Sprint(two.methods(), none.methods()), "[subscriptions/acknowledged tasks] [subscriptions/acknowledged]")
	})
}

// TestListenLeavesNothing opens and ends many subscriptions while changes are made. The bubble
// waits for every goroutine.
func TestListenLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					p := &peer{arrived: make(chan struct{}, 4096)}
					sub := listen(t, s, "", all, p)
					<-p.arrived
					s.Updated("x://a")
					s.ListChanged(server.KindTool)
					<-p.arrived
					sub.cancel(nil)
					<-sub.ended
				}
			})
		}
		wg.Wait()
	})
}
