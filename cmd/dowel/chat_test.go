package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// addCall is a turn in which the model wants to call a tool that does not say what it may do.
func addCall(a, b string) string {
	return `{"calls": [{"name": "dowel-test__add", "arguments": {"a": ` + a + `, "b": ` + b + `}}]}`
}

// Without a terminal lines go in and answers come out; what happens meanwhile is told beside.
func TestChatPiped(t *testing.T) {
	for _, test := range []struct {
		name           string
		turns          string
		stdin          string
		words          []string
		stdout, stderr string // of stderr a part; empty: nothing
		code           int
	}{
		{name: "nothing", stdin: ""},
		{name: "lines", turns: `{"expect": ["one"], "text": "First."}, {"expect": ["two\nthree"], "text": "Second.\nAnd more."}`, stdin: "one\n\ntwo\\\nthree", stdout: "First.\nSecond.\nAnd more.\n"},
		{
			name: "a call", turns: `{"text": "Let me see.", "calls": [{"name": "dowel-test__echo", "arguments": {"message": "hi"}}]}, {"expect": ["hi"], "text": "It said hi."}`,
			stdin: "echo hi\n", stdout: "Let me see.\nIt said hi.\n", stderr: "✓ dowel-test.echo message=hi · ",
		},
		{
			name: "nobody to ask", turns: addCall("1", "2") + `, {"expect": ["This tool was not run: the user has to approve this tool, and cannot be asked."], "text": "I may not."}`,
			stdin: "add\n", stdout: "I may not.\n", stderr: "– dowel-test.add a=1 b=2 · not run: the user has to approve this tool, and cannot be asked",
		},
		{name: "all may run", turns: addCall("1", "2") + `, {"expect": ["3"], "text": "3"}`, stdin: "add\n", words: []string{"--approve", "all"}, stdout: "3\n", stderr: "✓ dowel-test.add a=1 b=2"},
		{
			name: "answers", turns: `{"calls": [{"name": "dowel-test__name"}]}, {"expect": ["hello Ada"], "text": "done"}`, stdin: "ask\n",
			words: []string{"--approve", "all", "--answer", "value=Ada"}, stdout: "done\n", stderr: "✓ dowel-test.name",
		},
		{name: "instructions", turns: `{"expectBody": ["Be brief."], "text": "ok"}`, stdin: "x\n", words: []string{"--system", "Be brief."}, stdout: "ok\n"},
		{name: "cut off", turns: `{"text": "One,", "stop": "length"}, {"expect": ["go on"], "text": "two."}`, stdin: "count\ngo on\n", stdout: "One,\ntwo.\n", stderr: `the answer is not whole; say "go on" for the rest of it`},
		{name: "a failure is not the end", turns: `{"fail": {"status": 400, "message": "no such luck"}}, {"text": "better"}`, stdin: "x\ny\n", stdout: "better\n", stderr: "no such luck"},
		{name: "a failure at the end", turns: `{"fail": {"status": 400, "message": "no such luck"}}`, stdin: "x\n", stderr: "no such luck", code: exitFailed},
		{name: "a command", stdin: "/approve\n/quit\nnever said\n", stdout: "ask: tools that are not read-only are asked about\n"},
		{name: "an unknown command", stdin: "/tols\n", stderr: "there is no command /tols; did you mean tools?", code: exitFailed},
		{name: "a prompt", turns: `{"expect": ["Greet Ada!"], "text": "Dear Ada"}`, stdin: "/dowel-test.greet name=Ada\n", stdout: "Dear Ada\n", stderr: "Greet Ada!"},
		{name: "a prompt without what it needs", stdin: "/dowel-test.greet\n", stderr: "argument name is missing", code: exitFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			m := follow(t, `{"turns": [`+test.turns+`]}`)
			out := dowel(t, test.stdin, onServer(t, append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, test.words...)...)...)
			if out.code != test.code || out.stdout != test.stdout || !strings.Contains(out.stderr, test.stderr) || test.stderr == "" && out.stderr != "" {
				t.Errorf("exit code %d\n%s\nstderr: %s", out.code, out.stdout, out.stderr)
			}
			if strings.Count(out.stderr, "no such luck") > 1 || test.code != 0 && !strings.Contains(out.stderr, "what was said last has failed") {
				t.Errorf("it is told twice: %s", out.stderr)
			}
		})
	}
}

func TestChatUsage(t *testing.T) {
	noModels(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for words, want := range map[string]string{
		"hello":                     "dowel run takes it as a word",
		"everything":                "a server is named with --server everything",
		"--approve some":            "there are ask, read-only, all, none",
		"--max-steps -1":            "a number above 0",
		"--json":                    "dowel run --json",
		"--resume":                  "no conversation was kept in",
		"--resume=x":                "there is no session x",
		"--system @/nowhere/at/all": "/nowhere/at/all",
		"--answer x":                "--answer",
		"--server nobody --model m --base-url http://127.0.0.1:9/v1": "no server is called nobody",
		"--server everything":              "there is no model to work with",
		"--model m --server everything --": "there is no command behind --",
	} {
		if out := dowel(t, "hello\n", append([]string{"chat"}, strings.Fields(words)...)...); out.code != exitUsage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v", words, out)
		}
	}
	if out := dowel(t, "", "chat", "--sessions"); out.code != exitOK || !strings.Contains(out.stderr, "no conversation was kept") {
		t.Errorf("%+v", out)
	}
}

// With --no-save nothing of what is said is left.
func TestChatNotSaved(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	m := follow(t, `{"turns": [{"text": "ok"}, {"text": "ok"}]}`)
	for _, words := range [][]string{{"--no-save"}, {}} {
		if out := dowel(t, "x\n", onServer(t, append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, words...)...)...); out.code != exitOK {
			t.Errorf("%+v", out)
		}
		found, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*"))
		if err != nil || (len(found) == 1) != (words == nil || len(words) == 0) {
			t.Errorf("%v: %v, %v", words, found, err)
		}
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
	var told strings.Builder
	c := &chat{show: newRenderer(newScreen(&strings.Builder{}, nil), newScreen(&told, nil))}
	for text, want := range map[string]int{
		"no file": 0, "see @gone.txt": 0, "@a.txt": 1, "see @a.txt.": 1, "(@a.txt)": 0, "see @a.txt, and @\"b c.txt\"!": 2, "@a.txt @a.txt": 1, "mail me@a.txt": 0, "@nobody": 0, "@odd)": 1, "@.": 0,
	} {
		content, err := c.mentions(text)
		if err != nil || len(content)-1 != want || content[0].Text != text {
			t.Errorf("%s: got %v, %v", text, content, err)
		}
	}
	if got := told.String(); strings.Count(got, "there is no file") != 1 || !strings.Contains(got, "there is no file gone.txt") {
		t.Errorf("it is told: %s", got)
	}
}

func TestUsageLines(t *testing.T) {
	tokens := agent.Tokens{System: 10, Tools: 4000, Messages: 90, Total: 4100, Window: 8000, PerMessage: []int{20, 70}, Estimated: true, Spent: agent.Usage{Input: 1500, Cached: 400, Output: 7}}
	for i := range 12 {
		tokens.PerTool = append(tokens.PerTool, agent.ToolTokens{Name: "a__t" + string(rune('a'+i)), Tokens: 100 * (i + 1), Offered: i > 0})
	}
	said := []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("hello\nthere")}}, {Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.UseTool("1", "a__tb", []byte(`{"x":1}`))}}}
	got := strings.Join(usageLines(tokens, said, 80), "\n")
	for _, part := range []string{
		"       10  instructions", "    4,000  definitions of 11 tools", "    1,200    a.tl\n    1,100    a.tk", "      200    1 other", "1 more tool found by search",
		"       90  2 messages\n       20    you: hello\n       70    model: calls a.tb x=1", "4,100  in all, 51% of the window of 8,000, estimated", "1,500 read (400 of them cached), 7 written",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
}

// What is kept late says which model it is with, as a copy does: it is gone on with that one.
func TestChatSavedLater(t *testing.T) {
	state, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy.jsonl")
	t.Setenv("XDG_STATE_HOME", state)
	m := follow(t, `{"turns": [{"text": "ok"}, {"expect": ["and now"], "text": "again"}]}`)
	out := dowel(t, "x\n/save\n/save "+copied+"\n", onServer(t, "chat", "--no-save", "--model", "gpt-test", "--base-url", m.url)...)
	kept, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || out.code != exitOK || len(kept) != 1 {
		t.Fatalf("%+v, %v, %v", out, kept, err)
	}
	for _, path := range append(kept, copied) {
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), `"event":"model","data":{"provider":"openai","model":"gpt-test","url":"`+m.url+`"}`) != 1 {
			t.Errorf("%s holds %s, %v", path, text, err)
		}
	}
	if out := dowel(t, "and now\n", onServer(t, "chat", "--resume")...); out.code != exitOK || out.stdout != "again\n" {
		t.Errorf("the model is not that of the session: %+v", out)
	}
}

// The help and the guide know the same answers to the question whether a tool may run.
func TestApprovalAnswers(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide-program.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"y", "s", "server, S", "a", "e", "n", "?"} {
		row := "\n| `" + strings.ReplaceAll(answer, ", ", "`, `") + "` | "
		if !strings.Contains(aboutChat, "\n  "+answer+" ") || !strings.Contains(string(guide), row) {
			t.Errorf("%s is in the help: %v, and in the guide: %v", answer, strings.Contains(aboutChat, "\n  "+answer+" "), strings.Contains(string(guide), row))
		}
	}
}

// What is decided about is shown as it is: a text is no other value.
func TestArgumentsAreTold(t *testing.T) {
	for input, want := range map[string]string{
		`{"a":false,"b":"false","c":"no"}`:       "a: false\nb: \"false\"\nc: no",
		`{"a":1,"b":"1","c":" 1","d":"1 2"}`:     "a: 1\nb: \"1\"\nc: \" 1\"\nd: 1 2",
		`{"a":"\"x\"","b":"x","c":""}`:           "a: \"\\\"x\\\"\"\nb: x\nc: ",
		`{"a":"{\n  \"b\": 1\n}","c":{"b":1}}`:   "a: (text)\n    {\n      \"b\": 1\n    }\nc:\n    {\n      \"b\": 1\n    }",
		`{"a":"two\nlines","n":null,"m":"null"}`: "a:\n    two\n    lines\nn: null\nm: \"null\"",
		`{}`:                                     "(no arguments)",
	} {
		if got := strings.Join(wholeArguments(json.RawMessage(input)), "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", input, got, want)
		}
	}
}

// All that a server wants to ask is shown, with what the model is told of tools and their results.
func TestSamplingLines(t *testing.T) {
	result := mcp.ToolResultContent{ToolUseID: "1", IsError: true, Content: []mcp.Content{mcp.Text("first\nsec\u200bond"), mcp.Image(make([]byte, 3), "image/png")}}
	got := strings.Join(samplingLines(&mcp.CreateMessageParams{
		SystemPrompt: "Be brief.", MaxTokens: 10,
		Messages: []mcp.SamplingMessage{
			{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("go")}},
			{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.UseTool("1", "look", []byte(`{"x":1}`))}},
			{Role: mcp.RoleUser, Content: mcp.SamplingContent{{Type: mcp.ContentToolResult, ToolResult: &result},
				{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "2", StructuredContent: []byte(`{"y":2}`)}}}},
		},
		Tools: []mcp.Tool{{Name: "look", Description: "Looks."}, {Name: "wi\u200bpe"}},
	}), "\n")
	want := `system: Be brief.
user: go
assistant: [call of look: {"x":1}]
result of 1: failed: first
    sec\u200bond
    [image, image/png, 3 bytes]
result of 2: {"y":2}
tool look: Looks.
tool wi\u200bpe: 
at most 10 tokens`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A line that is typed between two presses of Ctrl-C makes the second one a first.
func TestInterruptsApart(t *testing.T) {
	i := &interrupts{end: func(error) {}}
	for n, typed := range []bool{false, true, false} {
		if typed {
			i.typed()
		}
		if ends := i.press(); ends != (n == 2) {
			t.Errorf("press %d ends dowel: %v", n, ends)
		}
	}
}

// A copy goes to a folder that is there; ~ is the user's.
func TestChatSave(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	home, here := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Chdir(here)
	m := follow(t, `{"turns": [{"text": "ok"}]}`)
	out := dowel(t, "x\n/save nowhere/copy.jsonl\n/save here.jsonl\n/save ~/copy.jsonl\n", onServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...)
	for _, want := range []string{filepath.Join(home, "copy.jsonl"), string(filepath.Separator) + "here.jsonl"} {
		if !strings.Contains(out.stdout, want+"\n") {
			t.Errorf("%s is missing in %+v", want, out)
		}
	}
	if !strings.Contains(out.stderr, "nowhere") || out.code != exitOK {
		t.Errorf("got %+v", out)
	}
	if _, err := os.Stat(filepath.Join(home, "copy.jsonl")); err != nil {
		t.Error(err)
	}
	if found, err := filepath.Glob(filepath.Join(here, "*")); err != nil || len(found) != 1 {
		t.Errorf("there are %v, %v", found, err)
	}
}

// A session goes on with its own model, and at no other place than its own.
func TestSameModel(t *testing.T) {
	for _, test := range []struct {
		notes []string
		given modelFlags
		want  modelFlags
		wrong string
	}{
		{},
		{notes: []string{`{"name": "local", "provider": "openai", "model": "qwen3"}`}, want: modelFlags{model: "local", again: true}},
		{notes: []string{`{"name": "local"}`, `{"provider": "openai", "model": "m", "url": "http://h/v1"}`}, want: modelFlags{model: "m", provider: "openai", url: "http://h/v1", again: true}},
		{notes: []string{`{"provider": "openai", "model": "m", "url": "http://****@h/v1"}`}, wrong: "name it with --model and --base-url"},
		{notes: []string{`{"name": "local"}`}, given: modelFlags{model: "m"}, want: modelFlags{model: "m"}},
	} {
		c := &chat{flags: &chatFlags{}}
		c.flags.modelFlags = test.given
		var events []session.Event
		for _, note := range test.notes {
			events = append(events, session.Event{Name: usedModel, Data: json.RawMessage(note)})
		}
		err := c.sameModel(events)
		if c.flags.modelFlags != test.want || (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%v: got %+v, %v", test.notes, c.flags.modelFlags, err)
		}
	}
}

// The secrets of a model's URL are neither shown nor kept, and of a model of the configuration no URL is.
func TestModelURLsAreMasked(t *testing.T) {
	m := chosenModel{Provider: "openai", Model: "m", URL: "https://me:hush@host/v1?key=hush"}
	if got := describeModel(m); got != "m (openai, at https://****@host/v1?key=****)" {
		t.Errorf("shown is %s", got)
	}
	for name, want := range map[string]string{"": `https://****@host/v1?key=****`, "mine": ""} {
		m.Name = name
		s := session.New(t.TempDir(), session.Header{})
		c := &chat{kept: s}
		if err := s.Message(agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("hello")}}); err != nil {
			t.Fatal(err)
		}
		c.noteModel(m)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(s.Path())
		if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "host") != (want != "") || !strings.Contains(string(text), want) {
			t.Errorf("kept is %s, %v", text, err)
		}
	}
}

// Who hears that there is no agent finds the conversation ended.
func TestChatNotBegun(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", modelVariable} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for range 50 {
		a := &app{stdin: strings.NewReader(""), stdout: newScreen(&strings.Builder{}, nil), stderr: newScreen(&strings.Builder{}, nil)}
		f := &chatFlags{approve: "ask", noSave: true}
		f.agentFlags.servers = []string{"everything"}
		c, err := a.newChat(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.open(); err != nil {
			t.Fatal(err)
		}
		for waiting := true; waiting; {
			select {
			case <-c.ready:
				waiting = false
			default:
			}
		}
		ended := c.ctx.Err()
		c.close()
		if ended == nil {
			t.Fatal("the conversation goes on")
		}
	}
}
