package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestSplitWords(t *testing.T) {
	for text, want := range map[string][]string{
		``: nil, `a=1  b=2`: {"a=1", "b=2"}, `a="one two" b='x "y"'`: {"a=one two", `b=x "y"`}, `a=""`: {"a="}, `""`: {""},
	} {
		if got, err := splitWords(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	if _, err := splitWords(`a="b`); exit.Code(err) != exit.Usage {
		t.Errorf("got %v", err)
	}
}

func TestMentioned(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b c.txt", "odd)"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var notes strings.Builder
	c := &conversation{view: linesView{agentview.NewRenderer(term.NewScreen(&strings.Builder{}, nil), term.NewScreen(&notes, nil))}}
	for text, want := range map[string]int{
		"no file": 0, "see @gone.txt": 0, "@a.txt": 1, "see @a.txt.": 1, "(@a.txt)": 0, "see @a.txt, and @\"b c.txt\"!": 2, "@a.txt @a.txt": 1, "mail me@a.txt": 0, "@nobody": 0, "@odd)": 1, "@.": 0,
	} {
		content, err := c.attachMentions(text)
		if err != nil || len(content)-1 != want || content[0].Text != text {
			t.Errorf("%s: got %v, %v", text, content, err)
		}
	}
	if got := notes.String(); strings.Count(got, "no file ") != 1 || !strings.Contains(got, "no file gone.txt") {
		t.Errorf("got notes: %s", got)
	}
}

func TestUsageLines(t *testing.T) {
	tokens := agent.Tokens{System: 10, Tools: 4000, Messages: 90, Total: 4100, Window: 8000, PerMessage: []int{20, 70}, Estimated: true, Spent: agent.Usage{Input: 1500, Cached: 400, Output: 7}}
	for i := range 12 {
		tokens.PerTool = append(tokens.PerTool, agent.ToolTokens{Name: "a__t" + string(rune('a'+i)), Tokens: 100 * (i + 1), Offered: i > 0})
	}
	messages := []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("hello\nthere")}}, {Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.UseTool("1", "a__tb", []byte(`{"x":1}`))}}}
	got := strings.Join(formatUsage(tokens, messages, modelregistry.Choice{Name: "m", Price: &config.Price{Input: 1000, Cached: 100, Output: 20000}}, 80), "\n")
	for _, part := range []string{
		"       10  instructions", "    4,000  definitions of 11 tools", "    1,200    a.tl\n    1,100    a.tk", "      200    1 other", "1 more tool found by search",
		"       90  2 messages\n       20    you: hello\n       70    model: calls a.tb x=1", "4,100  in all, 51% of the window of 8,000, estimated", "1,500 read (400 of them cached), 7 written, $1.28 by the price of m",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
}

// The help and the guide list the same answers to the approval question.
func TestApprovalAnswers(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide-program.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"y", "s", "server, S", "a", "e", "n", "?"} {
		row := "\n| `" + strings.ReplaceAll(answer, ", ", "`, `") + "` | "
		if !strings.Contains(chatHelp, "\n  "+answer+" ") || !strings.Contains(string(guide), row) {
			t.Errorf("%s is in the help: %v, and in the guide: %v", answer, strings.Contains(chatHelp, "\n  "+answer+" "), strings.Contains(string(guide), row))
		}
	}
}

// A typed line between two presses of Ctrl-C makes the second press count as a first one.
func TestInterruptsApart(t *testing.T) {
	i := &interruptHandler{endProgram: func(error) {}}
	for n, typed := range []bool{false, true, false} {
		if typed {
			i.forgetPress()
		}
		if ends := i.handlePress(); ends != (n == 2) {
			t.Errorf("press %d ends dowel: %v", n, ends)
		}
	}
}

// A resumed session uses its own model and URL.
func TestSameModel(t *testing.T) {
	for _, test := range []struct {
		notes []string
		given modelregistry.ModelFlags
		want  modelregistry.ModelFlags
		wrong string
	}{
		{},
		{notes: []string{`{"name": "local", "provider": "openai", "model": "qwen3"}`}, want: modelregistry.ModelFlags{Model: "local", Again: true}},
		{notes: []string{`{"name": "local"}`, `{"provider": "openai", "model": "m", "url": "http://h/v1"}`}, want: modelregistry.ModelFlags{Model: "m", Provider: "openai", Url: "http://h/v1", Again: true}},
		{notes: []string{`{"provider": "openai", "model": "m", "url": "http://****@h/v1"}`}, wrong: "name it with --model and --base-url"},
		{notes: []string{`{"name": "local"}`}, given: modelregistry.ModelFlags{Model: "m"}, want: modelregistry.ModelFlags{Model: "m"}},
	} {
		flags := test.given
		var events []session.Event
		for _, note := range test.notes {
			events = append(events, session.Event{Name: session.EventModel, Data: json.RawMessage(note)})
		}
		err := sessionlog.RestoreModel(events, &flags)
		if flags != test.want || (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%v: got %+v, %v", test.notes, flags, err)
		}
	}
}

// Secrets in a model's URL are neither shown nor saved. The URL of a model of the configuration is
// not saved at all.
func TestModelURLsAreMasked(t *testing.T) {
	m := modelregistry.Choice{Provider: "openai", Model: "m", URL: "https://me:hush@host/v1?key=hush"}
	if got := describeModel(m); got != "m (openai, at https://****@host/v1?key=****)" {
		t.Errorf("shown is %s", got)
	}
	for name, want := range map[string]string{"": `https://****@host/v1?key=****`, "mine": ""} {
		m.Name = name
		s := session.New(t.TempDir(), session.Header{})
		log := &sessionlog.Log{Session: s}
		log.BeginRun([]mcp.Content{mcp.Text("hello")}, m)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(s.Path())
		if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "host") != (want != "") || !strings.Contains(string(text), want) {
			t.Errorf("kept is %s, %v", text, err)
		}
	}
}

// If the agent cannot start, the conversation has ended before runtimeReady is closed.
func TestChatNotBegun(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", modelregistry.ModelVariable} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for range 50 {
		f := &factory.Factory{Stdin: strings.NewReader(""), Stdout: term.NewScreen(&strings.Builder{}, nil), Stderr: term.NewScreen(&strings.Builder{}, nil)}
		opts := &Options{approve: "ask", noSave: true}
		opts.Flags.Servers = []string{"no-such-server"}
		opts.Flags.Model, opts.Flags.ModelFlags.Url = "gpt-test", "http://127.0.0.1:1/v1"
		c, err := newConversation(t.Context(), f, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.startRuntime(); err != nil {
			t.Fatal(err)
		}
		for waiting := true; waiting; {
			select {
			case <-c.runtimeReady:
				waiting = false
			default:
			}
		}
		ended := c.ctx.Err()
		c.releaseParts()
		if ended == nil {
			t.Fatal("the conversation has not ended")
		}
	}
}

// The guide and /help list the same commands.
func TestGuideListsCommands(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide-chat.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slashCommands() {
		if row := "\n| `" + strings.TrimSpace("/"+s.name+" "+s.params) + "` |"; !strings.Contains(string(guide), row) {
			t.Errorf("docs/guide-chat.md has no row%s", row)
		}
	}
	if rows := strings.Count(string(guide), "\n| `/"); rows != len(slashCommands()) {
		t.Errorf("docs/guide-chat.md has %d commands of %d", rows, len(slashCommands()))
	}
}
