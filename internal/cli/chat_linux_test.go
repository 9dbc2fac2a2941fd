package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/chat"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// prompt is shown when the chat waits for the user.
const prompt = "\x1b[1m>\x1b[0m "

// startChat starts a chat by lines on a terminal with a model and the test server, and waits until
// both are ready.
func startChat(t *testing.T, m *model, words ...string) *pty {
	t.Helper()
	p := onTerminal(t, withTestServer(t, append([]string{"chat", "--plain", "--model", "gpt-test", "--base-url", m.url}, words...)...)...)
	p.expect(prompt)
	p.expect("cli-test (17 tools)")
	return p
}

// ownState gives a test its own state folder, which holds the sessions, and unsets the editor.
func ownState(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{"XDG_STATE_HOME": dir, "VISUAL": "", "EDITOR": ""} {
		t.Setenv(name, value)
	}
	return dir
}

// converse takes pairs of texts: it waits for the first and types the second.
func (p *pty) converse(steps ...string) {
	p.t.Helper()
	for i := 0; i+1 < len(steps); i += 2 {
		p.expect(steps[i])
		p.typeText(steps[i+1])
	}
}

// endChat waits for the prompt and ends the chat.
func (p *pty) endChat() {
	p.t.Helper()
	p.expect(prompt)
	p.typeText("\x04")
	p.expectExit(exit.OK)
}

func TestChatStreams(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"expect": ["hello"], "reasoning": "somebody greets me", "text": "Hello to you.", "usage": {"input": 1200, "output": 5}}]}`))
	p.typeText("hello\r")
	p.expect("thought: somebody greets me")
	p.expect("Hello to you.\r\n")
	p.expect("1,200 tokens read, 5 written")
	p.expect(prompt)
	p.typeText("\x04")
	p.expect("saved; continue with dowel chat --resume")
	p.expectExit(exit.OK)
}

func TestChatApproval(t *testing.T) {
	const question = "Run cli-test.add? [y/s/server/a/e/n/?]"
	done := `{"text": "done"}`
	for _, test := range []struct {
		name  string
		turns []string
		steps []string // pairs for converse
		shows []string
	}{
		{"once", []string{addCall("1", "2"), addCall("3", "4"), `{"expect": ["7"], "text": "done"}`}, []string{question, "y\r", question, "y\r"}, []string{"a=3 b=4"}},
		{"all about it", []string{addCall("1", "2"), done}, []string{"its server declares no effect", "", "Adds numbers.", "", "a: 1", "", "b: 2", "", question, "?\r", "never ask about", "", question, "y\r"}, []string{"a=1 b=2"}},
		{"for the session", []string{addCall("1", "2"), addCall("3", "4"), `{"expect": ["7"], "text": "done"}`}, []string{question, "s\r"}, []string{"a=1 b=2", "a=3 b=4"}},
		{"the server", []string{addCall("1", "2"), `{"calls": [{"name": "cli-test__fail"}]}`, `{"expect": ["out of cheese"], "text": "done"}`}, []string{question, "server\r"}, []string{"a=1 b=2", "cli-test.fail", "out of cheese"}},
		{"the server, in short", []string{addCall("1", "2"), `{"calls": [{"name": "cli-test__fail"}]}`, `{"expect": ["out of cheese"], "text": "done"}`}, []string{question, "?\r", "server, S  run it", "", question, "S\r"}, []string{"a=1 b=2", "cli-test.fail"}},
		{"always, of a server on the command line", []string{addCall("1", "2"), addCall("3", "4"), `{"expect": ["7"], "text": "done"}`}, []string{question, "a\r", "That is not kept", ""}, []string{"a=3 b=4"}},
		{"refused", []string{addCall("1", "2"), `{"expect": ["refused: use a calculator"], "text": "done"}`}, []string{question, "n\r", "Why not?", "use a calculator\r"}, []string{"not run: the user refused: use a calculator"}},
		{"refused at once", []string{addCall("1", "2"), `{"expect": ["refused: use a calculator"], "text": "done"}`}, []string{question, "n use a calculator\r"}, []string{"not run"}},
		{"refused without a reason", []string{addCall("1", "2"), `{"expect": ["the user refused"], "text": "done"}`}, []string{question, "\x04"}, []string{"not run: the user refused"}},
		{"no answer", []string{addCall("1", "2"), done}, []string{question, "maybe\r", "is not an answer", "", question, "A\r", `"A" is not an answer`, "", question, "always\r", `"always" is not an answer`, "", question, "\r", question, "y\r"}, []string{"a=1 b=2"}},
		{"other arguments", []string{addCall("1", "2"), `{"expect": ["42"], "text": "done"}`}, []string{question, "e\r", `{"a":1,"b":2}`, "\x15" + `{"a":40,"b":"x"}` + "\r", "Change it again? [Y/n]", "\r",
			"Arguments:", "\x15" + `{"a":40,"b":2}` + "\r", "a: 40", "", question, "y\r"}, []string{"a=40 b=2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ownState(t)
			p := startChat(t, newModel(t, `{"turns": [`+strings.Join(test.turns, ",")+`]}`))
			p.typeText("go\r")
			p.converse(test.steps...)
			for _, text := range test.shows {
				p.expect(text)
			}
			p.expect("done\r\n")
			p.endChat()
		})
	}
}

// A lasting approval is in the state, and dowel does not ask again.
func TestChatApprovalAlways(t *testing.T) {
	state := ownState(t)
	config := filepath.Join(t.TempDir(), "dowel.json")
	entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"mine": map[string]any{"command": testBinary(t), "args": []string{serverWord}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, entry, 0o600); err != nil {
		t.Fatal(err)
	}
	call := `{"calls": [{"name": "mine__add", "arguments": {"a": 1, "b": 2}}]}, {"expect": ["3"], "text": "done"}`
	m := newModel(t, `{"turns": [`+call+`,`+call+`]}`)
	for _, asked := range []bool{true, false} {
		p := onTerminal(t, "chat", "--plain", "--model", "gpt-test", "--base-url", m.url, "--config", config)
		p.expect("servers: mine (")
		p.typeText("go\r")
		if asked {
			p.converse("Run mine.add?", "a\r")
		}
		p.expect("mine.add")
		p.expect("done\r\n")
		p.endChat()
	}
	if text, err := os.ReadFile(filepath.Join(state, "dowel", "state.json")); err != nil || !strings.Contains(string(text), `"add"`) {
		t.Errorf("the state holds %s, %v", text, err)
	}
}

// A tool that has changed since the user always allowed it is asked about again, with the
// differences, until the user allows the new definition.
func TestChatApprovalOfChangedTool(t *testing.T) {
	ownState(t)
	folder := t.TempDir()
	tools, config := filepath.Join(folder, "tools.json"), filepath.Join(folder, "dowel.json")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"a": map[string]any{"command": testBinary(t), "args": []string{changingWord, tools}}}})
	if err != nil {
		t.Fatal(err)
	}
	write(config, string(entry))
	call := `{"calls": [{"name": "a__env", "arguments": {"name": "HOME"}}]}, {"expect": ["it ran"], "text": "done"}`
	m := newModel(t, `{"turns": [`+call+`,`+call+`,`+call+`]}`)
	for _, round := range []struct {
		tools string
		steps []string
	}{
		{honestTools, []string{"Run a.env?", "a\r"}},
		{turnedTools, []string{"It has changed since you allowed it (seen ", "", turnedDifferences[0], "", turnedDifferences[1], "", turnedDifferences[2], "", "Run a.env?", "a\r"}},
		{turnedTools, nil},
	} {
		write(tools, round.tools)
		p := onTerminal(t, "chat", "--plain", "--model", "gpt-test", "--base-url", m.url, "--config", config)
		p.expect("servers: a (")
		p.typeText("go\r")
		p.converse(round.steps...)
		p.expect("done\r\n")
		p.endChat()
		if asked := strings.Contains(p.output(), "Run a.env?"); asked != (round.steps != nil) {
			t.Errorf("asked: %v, with %s", asked, round.tools)
		}
	}
}

// The user edits the arguments in the editor that the environment names.
func TestChatApprovalInEditor(t *testing.T) {
	ownState(t)
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\ngrep -q '\"a\": 1' \"$2\" && echo '{\"a\": 20, \"b\": 22}' > \"$2\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", editor+" --wait")
	p := startChat(t, newModel(t, `{"turns": [`+addCall("1", "2")+`, {"expect": ["42"], "text": "done"}]}`))
	p.typeText("go\r")
	p.converse("Run cli-test.add?", "e\r", "b: 22", "", "Run cli-test.add?", "y\r")
	p.expect("done\r\n")
	p.endChat()
}

// Text that was typed before a question does not answer it.
func TestChatTypedAhead(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"delayMs": 500, "calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}]}, {"expect": ["refused"], "text": "done"}]}`))
	p.typeText("go\r")
	p.expect("thinking")
	p.typeText("y\r")
	p.converse("Run cli-test.add?", "n\r", "Why not?", "\r")
	p.expect("done\r\n")
	p.endChat()
}

func TestChatElicitation(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"calls": [{"name": "cli-test__form"}]}, {"expect": ["accept {\"name\":\"Ada\",\"age\":30,\"agree\":true,\"colour\":\"#0f0\",\"days\":[\"mon\",\"wed\"]}"], "text": "done"}]}`), "--approve", "all")
	p.typeText("go\r")
	p.converse("Who are you?", "", "Your name", "A\r", "must be at least 2", "Ada\r", "Enter takes 30", "\r", "agree", "yes\r", "2) Green", "2\r", "3) wed", "1,wed\r", "mail", "\r", "[Y/n/edit]", "\r")
	p.expect("done\r\n")
	p.endChat()
}

// The built-in server asks with a form, and for consent to open a page.
func TestChatElicitationOfEverything(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"calls": [{"name": "everything__test_elicitation", "arguments": {"message": "Who are you?"}}]},
		{"expect": ["accept, content: {\"username\":\"ada\",\"email\":\"ada@example.com\"}"], "calls": [{"name": "everything__ask_url"}]}, {"expect": ["agreed to visit"], "text": "done"}]}`), "--server", "everything")
	p.typeText("go\r")
	p.converse("(built into dowel)", "", "Who are you?", "", "username", "ada\r", "email", "ada@example.com\r", "[Y/n/edit]", "y\r", "Nothing has been opened.", "", "[N]o:", "m\r")
	p.expect("done\r\n")
	p.endChat()
}

func TestChatElicitationRefused(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"calls": [{"name": "cli-test__name"}]}, {"calls": [{"name": "cli-test__name"}]}, {"text": "done"}]}`), "--approve", "all")
	p.typeText("go\r")
	p.converse("What is your name?", "", "\x1b[1m  >\x1b[0m ", "/decline\r", "What is your name?", "", "\x1b[1m  >\x1b[0m ", "\x04", "left unanswered", "")
	p.expect("done\r\n")
	p.endChat()
}

func TestChatSampling(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"calls": [{"name": "everything__test_sampling", "arguments": {"prompt": "the capital"}}]}, {"expect": ["the capital"], "text": "Paris"}, {"expect": ["Paris"], "text": "done"},
		{"calls": [{"name": "everything__test_sampling", "arguments": {"prompt": "the capital"}}]}, {"text": "done again"}]}`), "--server", "everything")
	p.typeText("go\r")
	p.converse("everything\x1b[0m wants to ask the model gpt-test", "", "user: the capital", "", "Allow it? [y/server/n/?]", "y\r")
	p.expect("done\r\n")
	p.typeText("again\r")
	p.converse("Allow it? [y/server/n/?]", "?\r", "let everything use the model for this session", "", "Allow it? [y/server/n/?]", "n\r", "may not use the model", "")
	p.expect("done again\r\n")
	p.endChat()
}

func TestChatLines(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [{"expect": ["one\ntwo"], "text": "first"}, {"expect": ["a\nb\tc"], "text": "second"}, {"expect": ["/etc is a folder"], "text": "third"}, {"expect": ["one\ntwo"], "text": "fourth"}]}`)
	p := startChat(t, m, "--no-save")
	p.typeText("one\\\r")
	p.expect("…")
	p.typeText("two\r")
	p.expect("first\r\n")
	p.expect(prompt)
	p.typeText("\x1b[200~a\rb\tc\x1b[201~\r")
	p.expect("second\r\n")
	p.expect(prompt)
	p.typeText("/etc is a folder\r")
	p.expect("unknown command /etc")
	p.expect(prompt)
	p.typeText("//etc is a folder\r")
	p.expect("third\r\n")
	p.expect(prompt)
	p.typeText("gone\x03")
	p.expect(prompt)
	p.typeText("\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\rtwo\r") // the first line again
	p.expect("fourth\r\n")
	p.endChat()
}

func TestChatCommands(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [{"expect": ["Greet Ada!"], "text": "Dear Ada"}, {"expect": ["Greet Bob!"], "text": "Dear Bob", "usage": {"input": 2000, "output": 10}}]}`)
	p := startChat(t, m)
	for _, step := range []struct{ say, shows string }{
		{"/help", "add a file to the message"},
		{"/hepl", "did you mean help?"},
		{"/tools", "cli-test.echo"},
		{"/tools says again", "message"},
		{"/tools nothing of that kind", "tools contains"},
		{"/servers", "ready"},
		{"/prompts", "/cli-test.greet"},
		{"/model", "gpt-test"},
		{"/model gpt-other", "model gpt-other (openai, at http://127.0.0.1:"},
		{"/model gpt-test", "model gpt-test"},
		{"/approve", "ask: dowel asks before it runs a tool that is not read-only"},
		{"/approve some", "/approve some: want ask"},
		{"/approve none", "none: no tool runs"},
		{"/save", "the conversation is empty"},
		{"/cli-test.greet name=Ada", "Dear Ada\r\n"},
		{"/cli-test.greta", "did you mean cli-test.greet?"},
		{"/cli-test.greet age=3 name=x", "there is no argument age"},
	} {
		p.typeText(step.say + "\r")
		p.expect(step.shows)
		p.expect(prompt)
	}
	p.typeText("/cli-test.greet\r")
	p.converse("Who is greeted", "", "name=", "Bob\r", "Dear Bob\r\n", "", prompt, "/usage\r")
	p.expect("definitions of")
	p.expect("you: Greet Ada!")
	p.expect("in all")
	p.expect("spent so far: 2,000 read, 10 written")
	p.expect(prompt)
	copied := filepath.Join(t.TempDir(), "copy.jsonl")
	p.typeText("/save " + copied + "\r")
	p.expect("saved to")
	p.expect(prompt)
	if text, err := os.ReadFile(copied); err != nil || !strings.Contains(string(text), "Dear Bob") {
		t.Errorf("the copy holds %s, %v", text, err)
	}
	p.typeText("/save\r")
	p.expect("saved as ")
	p.expect(prompt)
	p.typeText("/quit\r")
	p.expectExit(exit.OK)
}

func TestChatCompletion(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"expect": ["Greet Ada!"], "text": "Dear Ada"}]}`))
	p.typeText("/ap\t")
	p.expect("/approve ")
	p.typeText("\x15/s\t")
	p.expect("/servers /save")
	p.typeText("\x15/cli\t")
	p.expect("/cli-test.greet ")
	p.typeText("n\t")
	p.expect("name=")
	p.typeText("Ada\r")
	p.expect("Dear Ada\r\n")
	p.endChat()
}

// Tab completes servers, resources and templates behind @. The resource goes to the model. Its name
// cannot move the cursor.
func TestChatResources(t *testing.T) {
	ownState(t)
	p := startChat(t, newModel(t, `{"turns": [{"expect": ["item 7", "Read @cli-test:test://item/7 now"], "text": "It is."}]}`))
	p.typeText("Read @cli\t")
	p.expect("@cli-test:")
	p.typeText("test://t\t")
	p.expect("test://text test://ticking")
	p.typeText("\x7fi\t")
	p.expect("tem/")
	p.typeText("\t")
	p.expect("test://item/{id}")
	p.typeText("7 now\r")
	p.expect("added cli-test:test://item/7")
	p.expect("It is.\r\n")
	p.typeText("See @cli-test:test://\x1b[2J\r")
	p.expect("has no resource")
	p.typeText("@cli-tset:test://text\r")
	p.expect("did you mean cli-test?")
	p.endChat()
}

func TestChatMentions(t *testing.T) {
	ownState(t)
	file := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("the cheese is in the cellar"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startChat(t, newModel(t, `{"turns": [{"expect": ["the cheese is in the cellar", "@nobody"], "text": "In the cellar."}]}`))
	p.typeText("Where is it, @nobody? See @" + file + ".\r")
	p.expect("added ")
	p.expect("In the cellar.\r\n")
	p.endChat()
}

// A later process continues a saved chat.
func TestChatResume(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [`+addCall("1", "2")+`, {"text": "It is three."}, {"expectBody": ["what is one and two", "It is three."], "text": "I said three."}, {"expectBody": ["I said three."], "text": "Still three."}]}`)
	p := startChat(t, m)
	p.typeText("what is one and two\r")
	p.converse("Run cli-test.add?", "y\r")
	p.expect("It is three.\r\n")
	p.endChat()
	p = startChat(t, m, "--resume")
	if !strings.Contains(p.output(), "resuming a conversation of 4 messages") || !strings.Contains(p.output(), "It is three.") {
		t.Errorf("what was said is not shown: %q", p.output())
	}
	p.typeText("what did you say?\r")
	p.expect("I said three.\r\n")
	p.endChat()

	out := runDowel(t, "", "chat", "--sessions", "--json")
	var listed struct {
		Sessions []chat.SessionLine `json:"sessions"`
	}
	if err := json.Unmarshal([]byte(out.stdout), &listed); err != nil || len(listed.Sessions) != 1 || listed.Sessions[0].Words != "what is one and two" || listed.Sessions[0].Model != "gpt-test" {
		t.Fatalf("%v: %s%s", err, out.stdout, out.stderr)
	}
	one := listed.Sessions[0]
	if info, err := os.Stat(one.Path); err != nil || info.Mode().Perm() != 0o600 || time.Since(one.Began) > time.Hour {
		t.Errorf("%+v: %v, %v", one, info, err)
	}
	if out := runDowel(t, "", "chat", "--sessions"); !strings.Contains(out.stdout, one.ID) || !strings.Contains(out.stdout, "what is one and two") {
		t.Errorf("got %s%s", out.stdout, out.stderr)
	}
	if out := runDowel(t, "And now?\n", withTestServer(t, "chat", "--resume="+one.ID)...); out.code != exit.OK || out.stdout != "Still three.\n" {
		t.Errorf("the model is not that of the session: %+v", out)
	}
	if out := runDowel(t, "", "chat", "--resume", "nothing"); out.code != exit.Usage || !strings.Contains(out.stderr, "there is no session nothing") {
		t.Errorf("got %+v", out)
	}
}

// dowel continues a conversation of an older dowel: a file with fewer kinds of lines and fields,
// and with a call that its process did not finish.
func TestChatContinuesOldFile(t *testing.T) {
	folder := filepath.Join(ownState(t), "dowel", "sessions")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	const old = `{"session":{"version":1,"id":"20260102-150405-1a2b","began":"2026-01-02T15:04:05Z","model":"gpt-test"}}
{"at":"2026-01-02T15:04:05Z","message":{"role":"user","content":[{"type":"text","text":"what is one and two"}]}}
{"at":"2026-01-02T15:04:06Z","message":{"role":"assistant","content":[{"type":"text","text":"It is three."}]}}
{"at":"2026-01-02T15:05:05Z","message":{"role":"user","content":[{"type":"text","text":"and again"}]}}
{"at":"2026-01-02T15:05:06Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"cli-test__add","input":{"a":1,"b":2}}]}}
`
	path := filepath.Join(folder, "20260102-150405-1a2b.jsonl")
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newModel(t, `{"turns": [{"expectBody": ["It is three.", "and again", "go on"], "text": "I go on."}]}`)
	out := runDowel(t, "go on\n", withTestServer(t, "chat", "--resume=20260102-150405-1a2b", "--model", "gpt-test", "--base-url", m.url)...)
	if out.code != exit.OK || out.stdout != "I go on.\n" {
		t.Errorf("got %+v", out)
	}
	now, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(now), old) || !strings.Contains(string(now), "I go on.") {
		t.Errorf("the file does not go on: %v\n%s", err, now)
	}
}
