package hub_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

const grown = 60

// pages serves lists of tools that are wrong in the way that its argument names.
func pages() {
	s := server.New("pages", "1", &server.Options{PageSize: 4, Logger: quiet})
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
	server.Prompt(s, "greet", "Greets.", func(context.Context, struct{}) (string, error) { return "hello", nil })
	more := func(i int) {
		server.Tool(s, fmt.Sprintf("more_%03d", i), "More.", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	for i := range 10 {
		more(i)
	}
	n := 10
	page := func(name, cursor string) *mcp.Result {
		return &mcp.Result{Raw: fmt.Appendf(nil, `{"tools":[{"name":%q,"inputSchema":{"type":"object"}}],"nextCursor":%q}`, name, cursor)}
	}
	kind := os.Args[2]
	_ = stdio.Serve(context.Background(), mcp.Chain(s, before(mcp.MethodListTools, func(*mcp.Request) *mcp.Result {
		n++
		switch kind {
		case "grows":
			if n <= grown {
				more(n - 1)
			}
		case "repeats":
			return page("echo", "again")
		case "endless":
			return page(fmt.Sprint("endless_", n), fmt.Sprint(n))
		}
		return nil
	})))
}

// Lists that grow while they are read are read to their end. Endless lists are given up, without
// harm to others.
func TestStrangeLists(t *testing.T) {
	h := start(t, hub.Options{Logger: quiet},
		hub.Definition{Name: "grows", Target: faulty("pages", "grows")},
		hub.Definition{Name: "repeats", Target: faulty("pages", "repeats")},
		hub.Definition{Name: "endless", Target: faulty("pages", "endless")},
		hub.Definition{Name: "other", Target: echo("other")},
	)
	until(t, "the other one is ready", func() bool { return h.Upstream("other").State().Status == hub.Ready })
	settled(t, h)
	if got := wires(h.Catalog().Items(catalog.Prompt)); !slices.Equal(got, []string{"grows__greet", "repeats__greet", "endless__greet", "other__greet"}) {
		t.Errorf("prompts: %v", got)
	}
	var want []string
	for i := range grown {
		want = append(want, fmt.Sprintf("grows__more_%03d", i))
	}
	until(t, "what has grown is there", func() bool {
		var got []string
		for _, item := range h.Catalog().Items(catalog.Tool) {
			if strings.HasPrefix(item.WireName, "grows__more") {
				got = append(got, item.WireName)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	for _, u := range h.Upstreams() {
		if s := u.State(); s.Status != hub.Ready || s.Attempt != 0 {
			t.Errorf("%s: %+v", u.Name(), s)
		}
		if _, err := call(t, u, "hi"); err != nil {
			t.Errorf("%s: %v", u.Name(), err)
		}
	}
	if n := h.Catalog().Count(h.Upstream("endless"), catalog.Tool); n > 1000 {
		t.Errorf("%d tools of an endless list", n)
	}
	for name, why := range map[string]string{"repeats": "comes again and again", "endless": "more than 1000 pages"} {
		u := h.Upstream(name)
		if !slices.ContainsFunc(u.Quarantined(), func(q catalog.Quarantined) bool { return q.Kind == catalog.Tool && strings.Contains(q.Reason, why) }) {
			t.Errorf("%s: nobody says that its list of tools %s: %v", name, why, u.Quarantined())
		}
	}
}
