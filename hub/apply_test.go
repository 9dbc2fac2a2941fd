package hub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/mcp"
	"go.uber.org/goleak"
)

// Definitions change fifty times a second. Servers without a change keep running, and the last
// definitions win.
func TestAppliedAllTheTime(t *testing.T) {
	h := hub.New(&hub.Options{Logger: quiet})
	defer h.Close()
	definitions := func(i int) []hub.Definition {
		all := []hub.Definition{
			{Name: "same", Target: echo("same"), Fingerprint: "1"},
			{Name: "child", Target: faulty("serve"), Fingerprint: "1"},
			{Name: "ruled", Target: echo("ruled"), Fingerprint: "1", Policy: hub.Policy{Tools: hub.ToolRules{Rename: map[string]string{"echo": fmt.Sprint("echo_", i)}}}},
			{Name: "changes", Target: echo(fmt.Sprint("changes ", i)), Fingerprint: fmt.Sprint(i)},
			{Name: "sometimes", Target: faulty("serve"), Fingerprint: fmt.Sprint(i / 20)},
		}
		if i%2 == 1 {
			all = append(all, hub.Definition{Name: "odd", Target: echo("odd"), Fingerprint: "1"})
			slices.Reverse(all)
		}
		return all
	}
	h.Apply(definitions(0), "the test begins")
	settled(t, h)
	steady := []string{"same", "child", "ruled"}
	var since []time.Time
	for _, name := range steady {
		since = append(since, h.Upstream(name).State().Since)
	}
	const applied = 100
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 1; i <= applied; i++ {
		<-tick.C
		h.Apply(definitions(i), "the file changed")
		for _, name := range steady {
			if i%10 == 0 {
				u := h.Upstream(name)
				if _, err := u.RoundTrip(t.Context(), hub.Caller{}, &mcp.Request{Method: mcp.MethodListTools}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	until(t, "the last definition is what runs", func() bool {
		settled(t, h)
		u := h.Upstream("changes")
		return u.State().Status == hub.Ready && u.Server().Info.Name == fmt.Sprint("changes ", applied)
	})
	settled(t, h)
	for i, name := range steady {
		if s := h.Upstream(name).State(); !s.Since.Equal(since[i]) || s.Status != hub.Ready {
			t.Errorf("%s has not changed, and was restarted: %+v", name, s)
		}
	}
	var names []string
	for _, u := range h.Upstreams() {
		names = append(names, u.Name())
		if s := u.State().Status; s != hub.Ready {
			t.Errorf("%s is %v", u.Name(), s)
		}
	}
	if want := []string{"same", "child", "ruled", "changes", "sometimes"}; !slices.Equal(names, want) || h.Upstream("odd") != nil {
		t.Errorf("%v", names)
	}
	want := []string{"same__echo", "child__echo", "ruled__echo_100", "changes__echo", "sometimes__echo"}
	if got := wires(h.Catalog().Items(catalog.Tool)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	h.Close()
	goleak.VerifyNone(t)
}

// Closing a hub while its servers start ends them all, and waits for it.
func TestCloseWhileStarting(t *testing.T) {
	var definitions []hub.Definition
	for i := range 3 {
		definitions = append(definitions,
			hub.Definition{Name: fmt.Sprint("silent", i), Target: faulty("silent")},
			hub.Definition{Name: fmt.Sprint("child", i), Target: faulty("serve")},
			hub.Definition{Name: fmt.Sprint("gone", i), Target: faulty("exit")},
			hub.Definition{Name: fmt.Sprint("inside", i), Target: echo("inside")},
			hub.Definition{Name: fmt.Sprint("slow", i), Target: late(echo("slow"), time.Hour)},
			hub.Definition{Name: fmt.Sprint("web", i), Target: "http://127.0.0.1:1/mcp"},
		)
	}
	for _, after := range []time.Duration{0, 3 * time.Millisecond, 50 * time.Millisecond} {
		h := hub.New(&hub.Options{MinBackoff: 5 * time.Millisecond, Logger: quiet})
		h.Apply(definitions, "the test begins")
		all := h.Upstreams()
		called := make(chan error, 1)
		go func() { _, err := callWithin(t.Context(), all[0], "hi"); called <- err }()
		time.Sleep(after)
		began := time.Now()
		h.Close()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("after %v, Close takes %v", after, took)
		}
		for _, u := range all {
			if s := u.State().Status; s != hub.Removed {
				t.Errorf("after %v, %s is %v", after, u.Name(), s)
			}
		}
		if err := <-called; !errors.Is(err, mcp.ErrConnection) {
			t.Errorf("a call that has waited: %v", err)
		}
		h.Apply(definitions, "too late")
		goleak.VerifyNone(t)
	}
}

// late returns a server that waits before its first answer.
func late(h mcp.Handler, delay time.Duration) mcp.Handler {
	var once sync.Once
	thought := make(chan struct{})
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		once.Do(func() { time.AfterFunc(delay, func() { close(thought) }) })
		select {
		case <-thought:
			return h.ServeMCP(ctx, req)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
}

// After Apply, state and catalog are at once the new definition's.
func TestChangedAtOnce(t *testing.T) {
	cache := memoryCache{}
	h := start(t, hub.Options{Logger: quiet, MinBackoff: time.Minute, Cache: cache}, hub.Definition{Name: "x", Target: faulty("serve"), Fingerprint: "1"})
	settled(t, h)
	u := h.Upstream("x")
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes := h.Events(limit, hub.CatalogChanged)
	for i, target := range []any{late(echo("two"), 20*time.Millisecond), faulty("exit"), faulty("pages", "repeats")} {
		h.Apply([]hub.Definition{{Name: "x", Target: target, Fingerprint: fmt.Sprint(i + 2)}}, "the file changed")
		if s := u.State(); s.Status != hub.Starting || s.Cause != "the file changed" {
			t.Errorf("%d: %+v", i, s)
		}
		if got := wires(h.Catalog().Items(catalog.Tool)); i != 2 && len(got) > 0 {
			t.Errorf("%d: it still offers %v", i, got)
		}
		settled(t, h)
	}
	if got := wires(h.Catalog().Items(catalog.Tool)); !slices.Equal(got, []string{"x__echo"}) {
		t.Errorf("%v", got)
	}
	announced := 0
	for range changes {
		if announced++; announced == 4 { // items removed, added, removed and added
			break
		}
	}
	if announced < 4 {
		t.Errorf("%d changes of the catalog", announced)
	}
	if kept := slices.Sorted(maps.Keys(cache)); !slices.Equal(kept, []string{"x1", "x2"}) {
		t.Errorf("kept are %v: a list that could not be read to its end is among them, or one is missing", kept)
	}
}
