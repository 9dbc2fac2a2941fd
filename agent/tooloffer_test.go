package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// newToolCrowd returns a bench with the tools of three servers, n of them of the server shop, in no
// order.
func newToolCrowd(n int) *bench {
	b := newBench("files__read_file", "files__write_file", "web__fetch_page")
	b.tools[0].Description, b.tools[1].Description, b.tools[2].Description = "Reads a file of the disk.", "Writes a file to the disk.", "Fetches a page of the web."
	for i := range n {
		b.tools = append(b.tools, mcp.Tool{Name: fmt.Sprintf("shop__list_orders_%03d", (i*7)%n), Description: strings.Repeat("Lists the orders of a customer. ", 5),
			InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: mcp.ReadOnly})
	}
	return b
}

func offered(c agent.Conversation) (names []string) {
	for _, t := range c.Tools {
		names = append(names, t.Name)
	}
	return names
}

// Many tools are found by search. Found and called tools stay offered, in the order of their
// discovery.
func TestSearchTools(t *testing.T) {
	b := newToolCrowd(300)
	m := &script{t: t, replies: []reply{
		says("", `search_tools {"query":"read a file from disk"}`),
		says("", `files__read_file {"path":"x"}`, `shop__list_orders_123 {}`),
		says("", `search_tools {"query":"fetch web page"}`, `search_tools {"query":"zzzqqq"}`, `search_tools {}`, `search_tools {"query":3}`),
		says("done"),
	}}
	a := newTrustingAgent(m, b, &agent.Options{Mode: agent.ModeAll, System: "Be brief."})
	got, err := trace(a.Run(t.Context(), mcp.Text("go")))
	if err != nil {
		t.Error(err)
	}
	check(t, a.Messages())
	if !slices.Contains(got, "starts search_tools") {
		t.Errorf("the search is not shown: %q", got)
	}
	wantSystem := "Be brief.\n\nThere are 303 tools of these servers: files (2), shop (300), web (1), too many to show them all."
	for i, c := range m.conversations {
		if !strings.HasPrefix(c.System, wantSystem) || c.System != m.conversations[0].System {
			t.Errorf("%d: %s", i, c.System)
		}
		if i > 0 && !slices.Equal(offered(c)[:len(m.conversations[i-1].Tools)], offered(m.conversations[i-1])) {
			t.Errorf("%v does not begin with %v", offered(c), offered(m.conversations[i-1]))
		}
	}
	if names := offered(m.conversations[0]); !slices.Equal(names, []string{"search_tools"}) {
		t.Errorf("%v", names)
	}
	if names := offered(m.conversations[1]); len(names) > 11 || names[1] != "files__read_file" {
		t.Errorf("%v", names)
	}
	if names := offered(m.conversations[2]); names[len(names)-1] != "shop__list_orders_123" {
		t.Errorf("%v", names)
	}
	found := a.Messages()[2].Content[0].ToolResult.Content[0].Text
	if !strings.HasPrefix(found, "files__read_file: Reads a file of the disk.\n") || strings.Count(found, ": ") > 10 {
		t.Error(found)
	}
	results := a.Messages()[6].Content
	for i, want := range []string{"web__fetch_page: Fetches a page", "No tool fits that", "files__read_file: Reads", "the arguments are not as the schema of search_tools says"} {
		if text := results[i].ToolResult.Content[0].Text; !strings.Contains(text, want) || results[i].ToolResult.IsError != (i == 3) {
			t.Errorf("%d: %s", i, text)
		}
	}
}

// The order of the offered tools does not depend on the order in which servers list them.
func TestOrderOfDefinitions(t *testing.T) {
	var before string
	for range 5 {
		b := newToolCrowd(300)
		for i := range b.tools { // the first server to be ready varies
			j := (i * 31) % len(b.tools)
			b.tools[i], b.tools[j] = b.tools[j], b.tools[i]
		}
		slices.Reverse(b.tools)
		m := &script{t: t, replies: []reply{says("", `search_tools {"query":"orders"}`), says("done")}}
		if _, err := trace(newTrustingAgent(m, b, nil).Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(err)
		}
		this := fmt.Sprint(m.conversations[0].System, offered(m.conversations[1]))
		if before != "" && this != before {
			t.Errorf("%s, and before %s", this, before)
		}
		before = this
	}
}

// The size of the window and Limits.SearchAt decide whether tools are offered by search.
func TestSearchAt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		window int
		opts   agent.Options
		want   bool
	}{
		{"not known", 0, agent.Options{}, true},
		{"large", 1_000_000, agent.Options{}, false},
		{"small", 8_000, agent.Options{}, true},
		{"more", 0, agent.Options{Limits: agent.Limits{SearchAt: 0.5}}, false},
		{"less", 1_000_000, agent.Options{Limits: agent.Limits{SearchAt: 0.001}}, true},
		{"never", 8_000, agent.Options{Limits: agent.Limits{SearchAt: -1}}, false},
	} {
		m := &script{t: t, window: tt.window, replies: []reply{says("done")}}
		a := newTrustingAgent(m, newToolCrowd(300), &tt.opts)
		if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(err)
		}
		if got := offered(m.conversations[0])[0] == "search_tools"; got != tt.want || got == (len(m.conversations[0].Tools) == 303) {
			t.Errorf("%s: %v, %d tools", tt.name, got, len(m.conversations[0].Tools))
		}
	}
}

// Tools that appear during a conversation do not move earlier tools, and a short message announces
// them to the model.
func TestToolsBecomeMany(t *testing.T) {
	b := newBench("files__read", "web__read")
	many := newToolCrowd(300).tools
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(many) > 0 {
			b.tools, many = append(b.tools, many...), nil
			b.changed <- struct{}{}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("ok")}}, nil
	}
	m := &script{t: t, replies: []reply{says("", "web__read {}"), says("", "shop__list_orders_007 {}"), says("done")}}
	a := newTrustingAgent(m, b, nil)
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	for i, want := range [][]string{{"files__read", "web__read"}, {"files__read", "web__read", "search_tools"}, {"files__read", "web__read", "search_tools", "shop__list_orders_007"}} {
		if got := offered(m.conversations[i]); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if said := a.Messages()[2].Text(); said != "Tools have become available, 303 of these servers: files (2), shop (300), web (1): search_tools finds them." {
		t.Error(said)
	}
}

// A resumed conversation offers the tools that it has called. A model with another window gets the
// tools that fit.
func TestSearchAfterResume(t *testing.T) {
	m := &script{t: t, window: 8_000, replies: []reply{says("", "web__fetch_page {}"), says("done")}}
	a := newTrustingAgent(m, newToolCrowd(300), &agent.Options{Mode: agent.ModeAll})
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	again := &script{t: t, window: 8_000, replies: []reply{says("done"), says("done")}}
	b := newTrustingAgent(again, newToolCrowd(300), &agent.Options{Messages: a.Messages()})
	large := &script{t: t, window: 1_000_000, replies: []reply{says("done")}}
	for i, model := range []agent.Model{again, large, again} {
		b.SetModel(model)
		if _, err := trace(b.Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(i, err)
		}
	}
	if got := offered(again.conversations[0]); !slices.Equal(got, []string{"search_tools", "web__fetch_page"}) {
		t.Errorf("%v", got)
	}
	if n := len(large.conversations[0].Tools); n != 303 || large.conversations[0].System != "" {
		t.Errorf("%d tools, %s", n, large.conversations[0].System)
	}
	if got := offered(again.conversations[1]); !slices.Equal(got, []string{"search_tools", "web__fetch_page"}) {
		t.Errorf("%v", got)
	}
}

// If a server's tool has the name of an agent's own tool, the agent's tool gets another name.
func TestOwnNames(t *testing.T) {
	b := newToolCrowd(300)
	b.tools = append(b.tools, mcp.Tool{Name: "search_tools", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: mcp.ReadOnly})
	m := &script{t: t, replies: []reply{says("", `search_tools_ {"query":"fetch"}`, `search_tools {}`), says("done")}}
	if _, err := trace(newTrustingAgent(m, b, nil).Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	if !slices.Equal(b.called, []string{"search_tools {}"}) || offered(m.conversations[0])[0] != "search_tools_" {
		t.Errorf("%q, %v", b.called, offered(m.conversations[0]))
	}
}

// limitedModel is a model that accepts at most a number of tools in a request.
type limitedModel struct {
	*script
	most int
}

func (f limitedModel) MaxTools() int { return f.most }

// A model never gets more tools than it accepts: the agent's own, and the tools found or called
// last.
func TestMaxTools(t *testing.T) {
	b := newBench()
	for i := range 20 {
		name := fmt.Sprintf("read%02d", i)
		b.tools = append(b.tools, mcp.Tool{Name: name, Description: "Reads the " + string(rune('a'+i)) + strings.Repeat(string(rune('a'+i)), 4), Annotations: mcp.ReadOnly})
	}
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(strings.Repeat("x", 200))}}, nil
	}
	m := limitedModel{&script{t: t, window: 1_000_000}, 5}
	m.replies = []reply{says("", "read01 {}", "read02 {}"), says("", "read03 {}"), says("", "read01 {}"), says("", "read04 {}"), says("", `search_tools {"query":"reads"}`), says("", "read19 {}"), says("done")}
	a := newTrustingAgent(m, b, &agent.Options{Limits: agent.Limits{MaxResult: 100, SearchAt: -1}})
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"search_tools", "search_tools read01 read02 read_result", "search_tools read01 read02 read_result read03",
		"search_tools read01 read02 read_result read03", "search_tools read01 read_result read03 read04", "", ""} {
		got := offered(m.conversations[i])
		if len(got) > m.most || want != "" && strings.Join(got, " ") != want {
			t.Errorf("%d: %v, want %s", i, got, want)
		}
		if i > 0 && !slices.Contains(got, "read_result") || !slices.Contains(got, "search_tools") {
			t.Errorf("%d: %v", i, got)
		}
	}
	found := a.Messages()[10].Content[0].ToolResult.Content[0].Text
	for _, name := range offered(m.conversations[5]) {
		if strings.HasPrefix(name, "read0") && !strings.Contains(found, name+":") {
			t.Errorf("%s was not found: %s", name, found)
		}
	}
	if best, _, _ := strings.Cut(found, ":"); !slices.Contains(offered(m.conversations[6]), best) || !slices.Contains(offered(m.conversations[6]), "read19") {
		t.Errorf("%s was found first but is not offered: %v", best, offered(m.conversations[6]))
	}
	if n := strings.Count(found, ": Reads"); n != 3 {
		t.Errorf("%d tools were found, want the 3 that can be offered: %s", n, found)
	}
}

// Tools are also offered by search if the model accepts fewer, counting the agent's own tools.
func TestMaxToolsReached(t *testing.T) {
	for n, want := range map[int]bool{0: false, 301: true, 304: true, 305: false, 1000: false} {
		m := limitedModel{&script{t: t, window: 10_000_000, replies: []reply{says("done")}}, n}
		if _, err := trace(newTrustingAgent(m, newToolCrowd(300), nil).Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(err)
		}
		if got := offered(m.conversations[0])[0] == "search_tools"; got != want {
			t.Errorf("%d: %v", n, got)
		}
	}
	// The earlier model was offered more tools than the new one accepts.
	m := limitedModel{&script{t: t, window: 10_000_000, replies: []reply{says("done"), says("done")}}, 100}
	all := &script{t: t, window: 10_000_000, replies: []reply{says("done")}}
	a := newTrustingAgent(all, newToolCrowd(300), nil)
	for _, model := range []agent.Model{all, m} {
		a.SetModel(model)
		if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(err)
		}
	}
	if n, before := len(m.conversations[0].Tools), len(all.conversations[0].Tools); n > 100 || before != 303 {
		t.Errorf("%d, and %d before", n, before)
	}
}
