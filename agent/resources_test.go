package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// shelf is a bench with resources in memory.
type shelf struct {
	*bench
	resources []agent.Resource
	list      func(ctx context.Context) error
	read      func(uri string) (*mcp.ReadResourceResult, error)

	watching sync.Mutex
	changed  map[string]func()
	lists    int
}

func newShelf(resources int, tools ...string) *shelf {
	s := &shelf{bench: newBench(tools...), changed: map[string]func(){}}
	for i := range resources {
		uri := fmt.Sprintf("x://%d", i)
		s.resources = append(s.resources, agent.Resource{Resource: mcp.Resource{URI: uri, Name: fmt.Sprint("number ", i)}, Server: "one"})
	}
	s.read = func(uri string) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: uri, Text: "text of " + uri}}}, nil
	}
	return s
}

func (s *shelf) Resources() agent.Resources { return s }

func (s *shelf) ListResources(ctx context.Context) ([]agent.Resource, error) {
	s.lists++
	if s.list != nil {
		if err := s.list(ctx); err != nil {
			return nil, err
		}
	}
	return slices.Clone(s.resources), nil
}

func (s *shelf) ReadResource(_ context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return s.read(uri)
}

func (s *shelf) WatchResource(_ context.Context, uri string, changed func()) {
	s.watching.Lock()
	defer s.watching.Unlock()
	s.changed[uri] = changed
}

// change reports a change of resources that are watched.
func (s *shelf) change(uris ...string) {
	s.watching.Lock()
	defer s.watching.Unlock()
	for _, uri := range uris {
		if s.changed[uri] != nil {
			s.changed[uri]()
		}
	}
}

// runOnce runs an agent, and returns its events of resources and the texts of all results, in the
// order of the calls.
func runOnce(t *testing.T, a *agent.Agent, input ...mcp.Content) (changes [][]agent.Resource, results []string) {
	t.Helper()
	if input == nil {
		input = []mcp.Content{mcp.Text("go")}
	}
	texts := map[string]string{}
	for e, err := range a.Run(t.Context(), input...) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case agent.ResourcesChanged:
			changes = append(changes, e.Resources)
		case agent.CallEnded:
			for i := range e.Result.Content {
				texts[e.Call.ID] += e.Result.Content[i].String() + "\n"
			}
		}
	}
	check(t, a.Messages())
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		results = append(results, texts[id])
	}
	return changes, results
}

func toolNames(c agent.Conversation) (names []string) {
	for _, t := range c.Tools {
		names = append(names, t.Name)
	}
	return names
}

// Two servers have the same resources, in both eras. The list names the servers, each can be read,
// and a change is reported for the right one, once until it is read again.
func TestResourcesThroughAGateway(t *testing.T) {
	eras(t, func(t *testing.T, r mcp.Revision) {
		logger := slog.New(slog.DiscardHandler)
		h := hub.New(&hub.Options{Logger: logger})
		defer h.Close()
		var definitions []hub.Definition
		for _, name := range []string{"one", "my two"} {
			s := everything.New()
			defer s.Close()
			definitions = append(definitions, hub.Definition{Name: name, Target: s, Options: client.Options{Wire: client.Wire{Revision: r}}})
		}
		h.Apply(definitions, "a test")
		g := gateway.New(h, &gateway.Options{Logger: logger})
		defer g.Close()
		if !h.Settle(t.Context()) {
			t.Fatal("the servers are not ready")
		}
		box := &reporting{Toolbox: dial(t, g, client.Options{}), reported: make(chan string, 100)}
		const watched = "dowel://one/test://watched-resource"
		read := `read_resource {"uri":"` + watched + `"}`
		m := &script{t: t, replies: []reply{
			says("", `list_resources {"search":"watched"}`), says("", read, `read_resource {"uri":"test://template/7/data"}`), says("read"),
			says("done"), says("done"), says("", read), says("read"), says("done"),
		}}
		a := newTrustingAgent(m, box, &agent.Options{Limits: agent.Limits{SearchAt: -1}})
		changes, results := runOnce(t, a)
		if len(changes) != 0 || !strings.Contains(results[0], watched+" (of one, ") || !strings.Contains(results[0], "/test://watched-resource (of my two, ") ||
			!strings.Contains(results[1], "The resource "+watched+" of the server one:") || !strings.Contains(results[1], "Updated 0 times") || !strings.Contains(results[2], "ID: 7") {
			t.Fatalf("%v, %q", changes, results)
		}
		update := func(tool string) {
			t.Helper()
			if _, err := client.Call[string](t.Context(), box.Client(), tool, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, wantChange := range []bool{true, false, true} {
			for _, tool := range box.tools(t, "test_trigger_resource_update") { // of both servers
				update(tool)
			}
			if uri := <-box.reported; uri != watched {
				t.Errorf("%s has changed", uri)
			}
			changes, _ := runOnce(t, a)
			if (len(changes) == 1) != wantChange || wantChange && (len(changes[0]) != 1 || changes[0][0].URI != watched || changes[0][0].Server != "one") {
				t.Errorf("%+v, want a change: %v", changes, wantChange)
			}
			if text := m.conversations[len(m.conversations)-1].Messages; wantChange && !strings.Contains(text[len(text)-1].Text(), "go[These resources may have changed since you have read them: "+watched+" of the server one.") {
				t.Errorf("the model heard %q", text[len(text)-1].Text())
			}
			if !wantChange { // read again
				runOnce(t, a)
			}
		}
	})
}

// reporting is a toolbox that tells which changes were reported.
type reporting struct {
	*agent.Toolbox
	reported chan string
}

func (r *reporting) Resources() agent.Resources {
	return reportingResources{r.Toolbox.Resources(), r.reported}
}

type reportingResources struct {
	agent.Resources
	reported chan<- string
}

func (r reportingResources) WatchResource(ctx context.Context, uri string, changed func()) {
	r.Resources.WatchResource(ctx, uri, func() {
		changed()
		r.reported <- uri
	})
}

// tools returns the names of the tools that end in a name.
func (r *reporting) tools(t *testing.T, name string) (all []string) {
	t.Helper()
	for tool, err := range r.Client().Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(tool.Name, "__"+name) {
			all = append(all, tool.Name)
		}
	}
	return all
}

// The tools are offered while there are resources, also among many tools, and under other names if
// a server's tools have these.
func TestResourceToolsOffered(t *testing.T) {
	for _, tt := range []struct {
		name  string
		tools *shelf
		want  []string
	}{
		{"no resources", newShelf(0, "a"), []string{"a"}},
		{"some", newShelf(1, "a"), []string{"a", "list_resources", "read_resource"}},
		{"their names are taken", newShelf(1, "read_resource"), []string{"read_resource", "list_resources", "read_resource_"}},
		{"many tools", newShelf(1, strings.Fields("a b c d e f g h i j k l")...), []string{"search_tools", "list_resources", "read_resource"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &script{t: t, replies: []reply{says("done"), says("done")}}
			o := &agent.Options{}
			if len(tt.tools.tools) > 10 {
				o.Limits.SearchAt = 1e-9
			}
			a := newTrustingAgent(m, tt.tools, o)
			runOnce(t, a)
			if got := toolNames(m.conversations[0]); !slices.Equal(got, tt.want) {
				t.Errorf("offered are %q, want %q", got, tt.want)
			}
			tt.tools.resources = nil
			tt.tools.bench.changed <- struct{}{}
			runOnce(t, a)
			if got := toolNames(m.conversations[1]); slices.Contains(got, "list_resources") || tt.tools.lists != 2 {
				t.Errorf("offered are %q after %d lists", got, tt.tools.lists)
			}
		})
	}
}

// A list is given in parts, of bounded length, which a search narrows.
func TestResourceList(t *testing.T) {
	s := newShelf(120)
	s.resources[7].Description = strings.Repeat("long ", 1000)
	s.resources[8].URI = "x://" + strings.Repeat("9", 3000)
	s.resources = append(s.resources, agent.Resource{Resource: mcp.Resource{URI: "y://{id}", Name: "a\nb\x1b[2J"}, Server: "two", Template: true})
	m := &script{t: t, replies: []reply{says("", `list_resources {}`, `list_resources {"cursor":"51"}`, `list_resources {"cursor":"101"}`,
		`list_resources {"server":"TWO"}`, `list_resources {"search":"NUMBER 11"}`, `list_resources {"search":"none"}`, `list_resources {"cursor":"x"}`), says("done")}}
	_, results := runOnce(t, newTrustingAgent(m, s, nil))
	for i, want := range []struct {
		lines int
		has   string
	}{{50 + 2, "\nThe list continues with the cursor 51."}, {50 + 2, "\nThe list continues with the cursor 101."}, {20, "x://119 (of one) number 119\n"},
		{1, "y://{id} (of two, a template) a b"}, {11, "x://11 "}, {1, "No resource fits that. There are 121; these servers have some: one, two."}, {1, `the cursor "x" is not one of this list`}} {
		if n := strings.Count(strings.TrimRight(results[i], "\n"), "\n") + 1; n != want.lines || !strings.Contains(results[i], want.has) || len(results[i]) > 11_000 {
			t.Errorf("%d: %d lines, want %d and %q:\n%s", i, n, want.lines, want.has, results[i])
		}
	}
}

// Reading is read-only: it needs no approval, and is refused if no tool may run. The decision names
// the server.
func TestResourceApproval(t *testing.T) {
	for mode, want := range map[agent.Mode]string{agent.ModeAsk: "annotation true", agent.ModeReadOnly: "annotation true", agent.ModeNone: "mode false"} {
		m := &script{t: t, replies: []reply{says("", `read_resource {"uri":"x://1"}`), says("done")}}
		var got string
		for e, err := range agent.New(m, newShelf(3), &agent.Options{Mode: mode}).Run(t.Context(), mcp.Text("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := e.(agent.Approval); ok {
				got = fmt.Sprint(d.By, " ", d.Allowed, " ", d.Server)
			}
		}
		if got != want+" one" {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
}

// Changes are collected until the next reply, and named in parts.
func TestResourceChangesBounded(t *testing.T) {
	s := newShelf(30)
	m := &script{t: t}
	for range 4 {
		m.replies = append(m.replies, says("done"))
	}
	a := newTrustingAgent(m, s, nil)
	var uris []string
	for i := range 30 {
		uris = append(uris, fmt.Sprintf("x://%d", i))
		content, err := a.ReadResource(t.Context(), uris[i])
		if err != nil || len(content) != 2 || content[1].Resource.Text != "text of "+uris[i] {
			t.Fatal(content, err)
		}
	}
	for range 1000 {
		s.change(uris...)
	}
	if _, err := a.ReadResource(t.Context(), "x://0"); err != nil { // the change is read before it is reported
		t.Fatal(err)
	}
	for _, want := range []int{20, 9, 0} {
		changes, _ := runOnce(t, a)
		n := 0
		for _, c := range changes {
			n += len(c)
		}
		if n != want {
			t.Errorf("%d changes, want %d", n, want)
		}
		s.change(uris[1:]...) // they are known to have changed
	}
}

// Resources that cannot be listed do not end or hold up a run for long.
func TestResourceListFails(t *testing.T) {
	for name, list := range map[string]func(ctx context.Context) error{
		"an error": func(context.Context) error { return errors.New("out of shelves") },
		"silence": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(1, "a")
				s.list = list
				m := &script{t: t, replies: []reply{says("", "a {}"), says("done"), says("done")}}
				a := newTrustingAgent(m, s, &agent.Options{Mode: agent.ModeAll})
				got, err := trace(a.Run(t.Context(), mcp.Text("go")))
				failed := slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "the resources could not be listed: ") })
				if err != nil || len(failed) != 1 || s.lists != 1 {
					t.Errorf("%q, %v after %d lists", failed, err, s.lists)
				}
				s.list = nil
				runOnce(t, a) // the next run tries again
				if !slices.Contains(toolNames(m.conversations[2]), "read_resource") {
					t.Errorf("offered are %q", toolNames(m.conversations[2]))
				}
			})
		})
	}
}

// A resource that cannot be read is an error, with the reason.
func TestResourceErrors(t *testing.T) {
	if _, err := newTrustingAgent(&script{t: t}, newBench("a"), nil).ReadResource(t.Context(), "x://1"); err == nil || !strings.Contains(err.Error(), "no resources") {
		t.Errorf("without resources: %v", err)
	}
	s := newShelf(3)
	s.read = func(string) (*mcp.ReadResourceResult, error) { return nil, errors.New("it is lent") }
	m := &script{t: t, replies: []reply{says("", `read_resource {"uri":"x://1"}`, `read_resource {"uri":"x:/1"}`, `read_resource {}`), says("done")}}
	a := newTrustingAgent(m, s, nil)
	if _, err := a.ReadResource(t.Context(), "x://1"); err == nil || err.Error() != "it is lent" {
		t.Errorf("got %v", err)
	}
	_, results := runOnce(t, a)
	for i, want := range []string{"it is lent\n", "it is lent; perhaps one of these was meant: x://1\n", `the arguments are not as the schema of read_resource says: {"uri": "…"} names the resource` + "\n"} {
		if results[i] != want {
			t.Errorf("%d: got %q, want %q", i, results[i], want)
		}
	}
	s.read = func(string) (*mcp.ReadResourceResult, error) { return &mcp.ReadResourceResult{}, nil }
	if content, err := a.ReadResource(t.Context(), "x://1"); err != nil || len(content) != 1 || content[0].Text != "The resource x://1 of the server one is empty." {
		t.Errorf("%v, %v", content, err)
	}
}

// A server that is slow to accept a subscription does not delay the reading for long. The resource
// then counts as changed.
func TestLateSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := everything.New()
		defer s.Close()
		accept := make(chan struct{})
		slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			var p mcp.ListenParams
			if req.Method == mcp.MethodListen && json.Unmarshal(req.Params, &p) == nil && p.Notifications.ResourceSubscriptions != nil {
				<-accept
			}
			return s.ServeMCP(ctx, req)
		})
		box := &reporting{Toolbox: dial(t, slow, client.Options{}), reported: make(chan string, 100)}
		m := &script{t: t, replies: []reply{says("done"), says("done")}}
		a := newTrustingAgent(m, box, nil)
		for range 2 {
			if _, err := a.ReadResource(t.Context(), "test://static-text"); err != nil {
				t.Fatal(err)
			}
		}
		if changes, _ := runOnce(t, a); changes != nil {
			t.Errorf("before: %v", changes)
		}
		close(accept)
		<-box.reported
		if changes, _ := runOnce(t, a); len(changes) != 1 {
			t.Errorf("after: %v", changes)
		}
		box.Close()
	})
}

// A resource is read again although its server lets clients keep it: the model is told to do that
// when the resource may have changed.
func TestResourceIsReadAgain(t *testing.T) {
	reads := 0
	s := server.New("s", "1", nil)
	defer s.Close()
	server.Resource(s, "x://1", "Counts.", func(context.Context, struct{}) (string, error) {
		reads++
		return fmt.Sprint(reads), nil
	}, server.ResourceOptions{Cache: &mcp.Cache{TTL: time.Hour, Scope: mcp.CachePublic}})
	a := newTrustingAgent(&script{t: t}, dial(t, s, client.Options{}), nil)
	for _, want := range []string{"1", "2"} {
		content, err := a.ReadResource(t.Context(), "x://1")
		if err != nil || content[1].Resource.Text != want {
			t.Errorf("got %v, %v, want %s", content, err, want)
		}
	}
}
