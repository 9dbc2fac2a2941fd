package control_test

import (
	"context"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// followMoments keeps the moments of running until end is called, or until running.Life ends.
func followMoments(running control.Running) (end func()) {
	ctx, cancel := context.WithCancel(running.Life)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		running.Moments.Follow(ctx, running)
	}()
	return func() {
		cancel()
		<-followed
	}
}

// The API shows servers, items and questions as of an earlier moment, also after they have changed.
func TestMoments(t *testing.T) {
	t.Parallel()
	h := hub.New(nil)
	g := gateway.New(h, nil)
	life, end := context.WithCancel(context.Background())
	calls := control.NewCalls(life, h, func(ctx context.Context, answers client.Answers, revision mcp.Revision) (*client.Client, error) {
		return client.Dial(ctx, g, &client.Options{Answers: answers, Wire: client.Wire{Revision: revision}})
	})
	running := control.Running{Life: life, Controller: &controller{h, nil}, Hub: h, Calls: calls, Moments: &control.Moments{}}
	api := control.ConsoleAPI(running)
	endFollowing := followMoments(running)
	t.Cleanup(func() {
		end()
		endFollowing()
		calls.Close()
		g.Close()
		h.Close()
	})
	type moments struct{ Times []time.Time }
	await := func(n int) time.Time {
		t.Helper()
		var all moments
		polltest.Until(t, "a moment more", func() bool {
			all = askAPI[moments](t, api, "GET", "/v1/moments", "")
			return len(all.Times) >= n
		})
		return all.Times[len(all.Times)-1]
	}
	type list struct{ Items []control.ItemSummary }
	asOf := func(path string, at time.Time) string {
		return path + "?at=" + url.QueryEscape(at.Format(time.RFC3339Nano))
	}
	empty := await(1)
	h.Apply([]hub.Definition{{Name: "everything", Target: everything.New()}}, "the test begins")
	h.Settle(t.Context())
	polltest.Until(t, "a moment with items", func() bool {
		at := await(2)
		return len(askAPI[list](t, api, "GET", asOf("/v1/catalog", at), "").Items) > 0
	})
	ready := await(2)
	info, err := calls.Start(tool("test_elicitation", `{"message":"Who are you?"}`))
	if err != nil {
		t.Fatal(err)
	}
	var asked time.Time
	polltest.Until(t, "a moment with a question", func() bool {
		asked = await(3)
		return len(askAPI[control.AskList](t, api, "GET", asOf("/v1/asks", asked), "").Asks) == 1
	})
	if err := calls.Asks.Answer(askAPI[control.AskList](t, api, "GET", "/v1/asks", "").Asks[0].ID, control.AskAnswer{Action: mcp.ElicitDecline}); err != nil {
		t.Fatal(err)
	}
	follow(t, calls, info.ID)
	h.Apply(nil, "the server goes")
	polltest.Until(t, "nothing is offered", func() bool { return len(askAPI[list](t, api, "GET", "/v1/catalog", "").Items) == 0 })

	for name, want := range map[string]struct {
		at          time.Time
		items, asks int
	}{"empty": {empty, 0, 0}, "ready": {ready, 40, 0}, "asked": {asked, 40, 1}} {
		if n := len(askAPI[list](t, api, "GET", asOf("/v1/catalog", want.at), "").Items); n < want.items || want.items == 0 && n > 0 {
			t.Errorf("%s: %d items", name, n)
		}
		if n := len(askAPI[control.AskList](t, api, "GET", asOf("/v1/asks", want.at), "").Asks); n != want.asks {
			t.Errorf("%s: %d questions", name, n)
		}
	}
	item := asOf("/v1/item", ready) + "&server=everything&kind=tool&name=add"
	if detail := askAPI[control.ItemSummary](t, api, "GET", item, ""); detail.Name != "add" {
		t.Errorf("the tool of then is %+v", detail)
	}
	for _, wrong := range []string{asOf("/v1/catalog", empty.Add(-time.Hour)), "/v1/asks?at=yesterday", "/v1/status?at=yesterday"} {
		if answer := askAPI[map[string]any](t, api, "GET", wrong, ""); answer["error"] == nil {
			t.Errorf("%s: %v", wrong, answer)
		}
	}
}

// A configuration counts from when it was loaded, so an earlier moment does not show it.
func TestMomentOfNewConfiguration(t *testing.T) {
	t.Parallel()
	h := hub.New(nil)
	var loaded atomic.Pointer[config.Set]
	loaded.Store(&config.Set{LoadedAt: time.Now()})
	running := control.Running{Life: t.Context(), Controller: &controller{h, nil}, Hub: h, Config: loaded.Load, Moments: &control.Moments{}}
	api := control.ConsoleAPI(running)
	endFollowing := followMoments(running)
	t.Cleanup(func() {
		endFollowing()
		h.Close()
	})
	var times []time.Time
	awaitMoments := func(n int) {
		t.Helper()
		polltest.Until(t, "a moment more", func() bool {
			times = askAPI[struct{ Times []time.Time }](t, api, "GET", "/v1/moments", "").Times
			return len(times) >= n
		})
	}
	awaitMoments(1)
	next := &config.Set{LoadedAt: time.Now()}
	loaded.Store(next)
	awaitMoments(2)
	if got := times[1]; !got.Equal(next.LoadedAt) {
		t.Errorf("the moment begins %v before the configuration was loaded", next.LoadedAt.Sub(got))
	}
}
