package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/skills"
)

// putSkill writes a skill with a file.
func putSkill(t *testing.T, dir, name, body string) {
	t.Helper()
	at := filepath.Join(dir, name)
	text := "---\nname: " + name + "\ndescription: How to do " + name + "\n---\n" + body + "\n"
	if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "SKILL.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(at, "form.md"), []byte("the form of "+name), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// skillServer returns a server with skills and a tool that changes something.
func skillServer(t *testing.T, names ...string) (s *server.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		putSkill(t, dir, name, "Body of "+name)
	}
	s = server.New("docs", "1", nil)
	stop, err := skills.Serve(s, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	server.Tool(s, "execute", "", func(context.Context, struct{}) (string, error) { return "executed", nil })
	return s, dir
}

func dialBox(t *testing.T, target any) *agent.Toolbox {
	t.Helper()
	box, err := agent.Dial(t.Context(), target, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

// runSkills runs an agent once. It returns the results of calls and the sources of decisions.
func runSkills(t *testing.T, a *agent.Agent) (results, decisions []string) {
	t.Helper()
	for e, err := range a.Run(t.Context(), mcp.Text("go")) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case agent.Approval:
			decisions = append(decisions, fmt.Sprintf("%s %s %v", e.Call.Name, e.By, e.Allowed))
		case agent.CallEnded:
			text := ""
			for i := range e.Result.Content {
				text += e.Result.Content[i].String() + "\n"
			}
			results = append(results, text)
		}
	}
	return results, decisions
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d texts, want %d: %q", what, len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s %d: %q, want %q", what, i, got[i], want[i])
		}
	}
}

// The model is told of the skills of all servers of a gateway, loads one by its name, and reads its
// files.
func TestSkillsThroughAGateway(t *testing.T) {
	one, _ := skillServer(t, "forms", "refunds")
	two, _ := skillServer(t, "forms")
	logger := slog.New(slog.DiscardHandler)
	h := hub.New(&hub.Options{Logger: logger})
	defer h.Close()
	h.Apply([]hub.Definition{{Name: "one", Target: one}, {Name: "two", Target: two}}, "a test")
	g := gateway.New(h, &gateway.Options{Logger: logger})
	defer g.Close()
	if !h.Settle(t.Context()) {
		t.Fatal("the servers are not ready")
	}
	m := &script{t: t, replies: []reply{
		says("", `read_skill {"skill":"refunds","file":"form.md"}`, `read_skill {"skill":"forms"}`, `read_skill {"skill":"two/forms"}`),
		says("", `read_skill {"skill":"two/forms","file":"./form.md"}`, `read_skill {"skill":"two/forms","file":"../../secret"}`,
			`read_skill {"search":"REFUNDS"}`, `read_skill {}`, `read_skill {"skill":"none"}`, `read_skill {"skill":1}`),
		says("done"),
	}}
	asked := []string{}
	a := agent.New(m, dialBox(t, g), &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		asked = append(asked, q.Server+" "+string(q.Call.Input))
		return agent.Decision{Allow: true}, nil
	}})
	results, _ := runSkills(t, a)
	wantTexts(t, "result", results,
		"is not loaded", "several skills are named forms: use one of one/forms, two/forms",
		"The skill forms of the server two (its files are form.md):", "the form of forms", "not a file of the skill",
		"one/refunds: How to do refunds", "one/forms: How to do forms\none/refunds", "no skill is named none", "not as the schema says")
	wantTexts(t, "question", asked, `two {"skill":"two/forms"}`)
	if !strings.Contains(results[2], "Body of forms") {
		t.Errorf("loaded: %q", results[2])
	}
	found := false
	for _, tool := range m.conversations[0].Tools {
		found = found || tool.Name == "read_skill" && strings.Contains(tool.Description, "one/forms: How to do forms\none/refunds: How to do refunds\ntwo/forms: ")
	}
	if !found {
		t.Errorf("the model does not know the skills: %+v", m.conversations[0].Tools)
	}
}

// A skill needs one approval for its contents. Without a user to ask it is loaded, but then
// approvals that were given before do not count.
func TestSkillApproval(t *testing.T) {
	load, execute := `read_skill {"skill":"forms"}`, `execute {}`
	allow := func(context.Context, agent.Question) (agent.Decision, error) { return agent.Decision{Allow: true}, nil }
	refuse := func(context.Context, agent.Question) (agent.Decision, error) {
		return agent.Decision{Reason: "no"}, nil
	}
	always := func(string) bool { return true }
	for name, tt := range map[string]struct {
		o    agent.Options
		want []string
	}{
		"asked":     {agent.Options{Approve: allow, Allowed: always}, []string{"execute always true", "read_skill user true", "read_skill session true", "execute always true"}},
		"refused":   {agent.Options{Approve: refuse, Allowed: always}, []string{"execute always true", "read_skill user false", "read_skill user false", "execute always true"}},
		"nobody":    {agent.Options{Allowed: always}, []string{"execute always true", "read_skill mode true", "read_skill mode true", "execute mode false"}},
		"read-only": {agent.Options{Mode: agent.ModeReadOnly, Allowed: always}, []string{"execute always true", "read_skill mode true", "read_skill mode true", "execute mode false"}},
		"all":       {agent.Options{Mode: agent.ModeAll}, []string{"execute mode true", "read_skill mode true", "read_skill mode true", "execute mode true"}},
		"none":      {agent.Options{Mode: agent.ModeNone}, []string{"execute mode false", "read_skill mode false", "read_skill mode false", "execute mode false"}},
	} {
		s, _ := skillServer(t, "forms")
		m := &script{t: t, replies: []reply{says("", execute), says("", load), says("", load), says("", execute), says("done")}}
		_, got := runSkills(t, agent.New(m, dialBox(t, s), &tt.o))
		wantTexts(t, name, got, tt.want...)
	}
}

// A change of a skill is refused under the loaded entry, and needs another approval.
func TestSkillChanges(t *testing.T) {
	s, dir := skillServer(t, "forms")
	n := 0
	m := &script{t: t}
	m.next = func(agent.Conversation) reply {
		n++
		switch n {
		case 2:
			putSkill(t, dir, "forms", "Another body")
			if err := os.WriteFile(filepath.Join(dir, "forms", "form.md"), []byte("another form"), 0o644); err != nil {
				t.Error(err)
			}
			return says("", `read_skill {"skill":"forms","file":"form.md"}`)
		case 4:
			return says("", `read_skill {"skill":"forms","file":"form.md"}`)
		case 5:
			return says("done")
		}
		return says("", `read_skill {"skill":"forms"}`)
	}
	questions := 0
	a := agent.New(m, dialBox(t, s), &agent.Options{Approve: func(context.Context, agent.Question) (agent.Decision, error) {
		questions++
		return agent.Decision{Allow: true}, nil
	}})
	results, _ := runSkills(t, a)
	wantTexts(t, "result", results, "Body of forms", "is refused", "Another body", "another form")
	if questions != 2 {
		t.Errorf("%d questions, want 2", questions)
	}
	// Of an earlier conversation it is unknown which skills the user has approved.
	m.next, m.replies = nil, nil
	later := &script{t: t, replies: []reply{says("", `execute {}`), says("done")}}
	_, decisions := runSkills(t, agent.New(later, dialBox(t, s), &agent.Options{Messages: a.Messages(), Allowed: func(string) bool { return true }}))
	wantTexts(t, "decision", decisions, "execute mode false")
}
