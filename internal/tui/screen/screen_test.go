package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

const answer = "## Two ways\n\nUse **bold** and `code`:\n\n1. first, a long item that needs more than one line on a terminal of eighty columns\n2. second\n   - nested\n\n" +
	"```go\nfunc main() { println(\"hello\") }\n```\n\n| name | size |\n|---|---|\n| a | 1 |\n| bc | 22 |\n\n> quoted\n\nSee [the page](https://example.com/x)."

func TestScreenStart(t *testing.T) {
	d := newDriver(t)
	d.send(Noticed{Text: "dowel: what you type goes to the model; /help lists commands, Ctrl-D ends."})
	d.send(ModelChosen{"gpt-test"}, ServersChanged{Ready: 2, Starting: 1, NeedLogin: 1, Failed: 1})
	d.checkGolden("start")
	d.checkStyles("start")
}

func TestScreenConversation(t *testing.T) {
	d := newDriver(t)
	d.press("How?", "enter")
	d.send(Taken{"How?"}, Working{"thinking"}, Thought{"The user asks "}, Thought{"for two ways."})
	d.send(Said{answer[:40]}, Said{answer[40:]}, Replied{})
	d.send(CallStarted{"1", toolcard.Card{Tool: "files.read", Brief: "path=a.txt", Arguments: []string{"path: a.txt"}}}, CallProgressed{"1", "1/2 half way"})
	d.press("and then?", "enter")
	d.send(Ticked{start.Add(3 * time.Second)}, ModelChosen{"gpt-test"}, ServersChanged{Ready: 2}, ContextUsed{Used: 32_000, Window: 128_000})
	d.checkGolden("conversation")
	d.checkStyles("conversation")
	if want := []string{"submit How?", "submit and then?"}; !slices.Equal(d.told, want) {
		t.Errorf("the host was told %q", d.told)
	}
	d.send(CallEnded{"1", toolcard.Card{State: toolcard.Succeeded, Facts: "2 s, 12 B, ~3 tokens", Result: "one\ntwo"}})
	d.press("ctrl+o")
	d.checkGolden("expanded")
	d.checkStyles("expanded")
}

func TestScreenInterrupt(t *testing.T) {
	d := newDriver(t)
	d.press("some words", "ctrl+c")
	if len(d.told) > 0 || d.shows("some words") {
		t.Errorf("Ctrl-C has not cleared the input: %q", d.told)
	}
	d.press("ctrl+c", "esc", "ctrl+d")
	if want := []string{"interrupt", "stop", "end"}; !slices.Equal(d.told, want) {
		t.Errorf("told %q", d.told)
	}
	d.send(CallStarted{"1", toolcard.Card{Tool: "files.read"}}, RunEnded{})
	if !d.shows("files.read · stopped") {
		t.Errorf("the call runs on:\n%s", strings.Join(d.rows(80, 24), "\n"))
	}
}

func TestScreenCompletes(t *testing.T) {
	d := newDriver(t)
	d.known = []string{"/model", "/servers", "/save"}
	d.press("/s")
	if !d.shows("/servers") || !d.shows("/save") || d.shows("/model") {
		t.Errorf("the commands are missing:\n%s", strings.Join(d.rows(80, 24), "\n"))
	}
	d.press("a", "tab")
	if draft, at := d.model.composer.Draft(); draft != "/save " || at != 6 {
		t.Errorf("completed %q, %d", draft, at)
	}
}

// Nothing that a server or a model says controls the terminal.
func TestScreenShowsNoForeignSequences(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[31mred\x1b[2J\u009b1m&#27;[32m\u202e\r\x08\x00"
	d := newDriver(t)
	d.press("hello", "enter")
	d.send(Taken{evil}, Thought{evil}, Said{evil + "\n\n```\n" + evil + "\n```\n\n| a |\n|---|\n| " + evil + " |\n\n<b>" + evil + "</b> [x](" + evil + ") `" + evil + "`"}, Replied{})
	d.send(Noticed{Text: evil}, Printed{"\x1b[2J\x1b]0;owned\x07\x1b[31mour own\x1b[0m"}, ModelChosen{evil}, Working{evil}, CallStarted{"1", toolcard.Card{Tool: evil, Brief: evil, Arguments: []string{evil}}})
	d.send(CallProgressed{"1", evil}, CallEnded{"1", toolcard.Card{State: toolcard.Failed, Facts: evil, Result: evil}})
	d.send(tea.PasteMsg{Content: evil})
	f := approval()
	f.Title, f.Body = evil, evil
	for _, expanded := range []bool{false, true} {
		d.model.expanded = expanded
		for _, asks := range []bool{false, true} {
			if asks {
				d.press("ctrl+c")
				d.send(Asked{f, func(string) {}})
			}
			d.send(tea.WindowSizeMsg{Width: 80, Height: 100})
			content := d.model.View().Content
			rest := stripStyles(content)
			if strings.ContainsAny(rest, "\x1b\u009b\x07\r\x08\x00\u202e") {
				t.Errorf("the screen holds a foreign sequence: %q", rest)
			}
			if !asks && strings.Contains(content, "\x1b[31mred") || strings.Contains(content, "\x1b[32m[") {
				t.Errorf("foreign styles are shown: %q", content)
			}
		}
	}
}

// A key press draws visible items only, however many there are.
func TestScreenDrawsVisibleItemsOnly(t *testing.T) {
	d := newDriver(t)
	for i := range 10_000 {
		d.send(Taken{fmt.Sprint("question ", i)}, Said{fmt.Sprint("answer **", i, "**")}, Replied{})
	}
	drawn := func() int {
		before := d.model.Transcript.Drawn
		d.rows(80, 24)
		return d.model.Transcript.Drawn - before
	}
	for _, step := range []struct {
		keys string
		most int
	}{{"x", 24}, {"y", 0}, {"pgup", 30}, {"pgup", 30}, {"pgdown", 0}, {"ctrl+home", 24}, {"pgdown", 30}} {
		d.press(step.keys)
		if n := drawn(); n > step.most {
			t.Errorf("%s draws %d items", step.keys, n)
		}
	}
	before := d.model.Transcript.Drawn
	d.rows(100, 24)
	if n := d.model.Transcript.Drawn - before; n > 30 {
		t.Errorf("another width draws %d items", n)
	}
}

// The end of the conversation stays in view, unless the user has scrolled up.
func TestScreenScrolls(t *testing.T) {
	d := newDriver(t)
	for i := range 100 {
		d.send(Noticed{transcript.Info, fmt.Sprint("notice ", i)})
	}
	if !d.shows("notice 99") {
		t.Error("the end is not shown")
	}
	d.press("pgup", "pgup")
	before := d.rows(80, 24)[:20]
	d.send(Noticed{transcript.Info, "news"})
	if after := d.rows(80, 24)[:20]; !slices.Equal(before, after) {
		t.Errorf("the view has moved:\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	d.press("esc")
	if !d.shows("news") {
		t.Error("Esc does not show the end")
	}
}

// Esc twice edits the last message, if nothing runs and nothing is written.
func TestScreenEditsLast(t *testing.T) {
	d := newDriver(t)
	d.press("esc", "x", "esc", "backspace", "esc")
	if slices.Contains(d.told, "edit") {
		t.Errorf("other keys between are ignored: %q", d.told)
	}
	d.send(Working{Activity: "thinking"})
	d.press("esc", "esc")
	d.send(RunEnded{})
	if slices.Contains(d.told, "edit") {
		t.Errorf("Esc edits while something runs: %q", d.told)
	}
	for _, presses := range [][]string{{"esc", "esc"}, {"alt+esc"}} { // the terminal may send both at once
		d.told = nil
		d.press(presses...)
		if len(d.told) == 0 || d.told[len(d.told)-1] != "edit" {
			t.Errorf("%q: told %q", presses, d.told)
		}
	}
	d.send(Drafted{"line one\nline two"})
	d.send(Drafted{"another"})
	if text := d.model.composer.Text(); text != "line one\nline two" {
		t.Errorf("the draft is %q", text)
	}
	d.press("ctrl+g")
	if !d.shows(`no editor for "line one\nline two"`) || d.model.composer.IsEmpty() {
		t.Error("the draft is lost")
	}
}

// F12 shows the frames of the current call, the newest at the end, without control sequences.
func TestScreenWire(t *testing.T) {
	d := newDriver(t)
	d.send(Taken{"Read it."}, CallStarted{"1", toolcard.Card{Tool: "files.read", Brief: "path=a.txt"}})
	d.send(Framed{Call: "files.list", Frame: Frame{Text: "earlier"}})
	d.send(Framed{"files.read", Frame{start, true, `request tools/call read 96 {"name":"read","arguments":{"path":"a.txt"}}`}, true})
	d.send(Framed{Call: "files.read", Frame: Frame{start.Add(3 * time.Millisecond), false, "response tools/call ok 3.0ms 301 " + strings.Repeat(`{"content":[{"type":"text","text":"one`+"\x1b[2J"+`"}]} `, 20)}})
	if d.shows("wire") {
		t.Error("the pane is open")
	}
	d.press("f12")
	d.checkGolden("wire")
	d.checkStyles("wire")
	if d.shows("earlier") || !slices.Equal(d.told, []string{"wire"}) {
		t.Errorf("told %q", d.told)
	}
	d.send(WireFailed{"the running dowel has ended"})
	if !d.shows("the running dowel has ended") {
		t.Error("the reason is missing")
	}
	d.press("f12")
	if d.shows("wire ·") {
		t.Error("the pane stays open")
	}
}

// A key among 10,000 messages and an unfolded result of 5 MiB. Each round draws two keys; a key may
// take 50 ms of the processor.
func BenchmarkKeyPress(b *testing.B) {
	d := newDriver(nil)
	for i := range 10_000 {
		d.send(Taken{fmt.Sprint("question ", i)}, Said{fmt.Sprint("answer **", i, "**")}, Replied{})
	}
	d.send(CallEnded{"1", toolcard.Card{State: toolcard.Succeeded, Result: strings.Repeat("a line of the result\n", 5<<20/21)}})
	d.press("ctrl+o")
	for b.Loop() {
		d.press("x")
		d.model.View()
		d.press("backspace")
		d.model.View()
	}
}
