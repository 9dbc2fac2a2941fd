package screen

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"
	"github.com/dowel-mcp/dowel/internal/tui/form"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

var update = flag.Bool("update", false, "write testdata anew")

// start is the time at which every test begins.
var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// driver presses keys on a screen, and notes what the host is told.
type driver struct {
	t     *testing.T
	model *Model
	told  []string
	known []string // completions
}

func newDriver(t *testing.T) *driver {
	d := &driver{t: t}
	tell := func(word string) func() { return func() { d.told = append(d.told, word) } }
	d.model = New(Host{
		Submit:     func(text string) { d.told = append(d.told, "submit "+text) },
		FollowWire: tell("wire"), Stop: tell("stop"), Interrupt: tell("interrupt"), End: tell("end"), EditLast: tell("edit"),
		OpenEditor: func(text string) (*exec.Cmd, func(error) (string, error), error) {
			return nil, nil, fmt.Errorf("no editor for %q", text)
		},
		MentionImage: func(pasted string) (string, bool) {
			return "@" + pasted, strings.HasSuffix(pasted, ".png")
		},
		Complete: func(draft string, at int) (string, int, []string) {
			var found []string
			for _, word := range d.known {
				if strings.HasPrefix(word, draft[:at]) {
					found = append(found, word)
				}
			}
			if len(found) == 1 {
				return found[0] + " ", len(found[0]) + 1, found
			}
			return draft, at, found
		},
	}, true, start)
	return d
}

// send hands messages to the screen, and runs the commands that come back.
func (d *driver) send(messages ...tea.Msg) {
	for _, msg := range messages {
		_, command := d.model.Update(msg)
		if command != nil {
			switch result := command().(type) {
			case completed, pasted:
				d.send(result)
			}
		}
	}
}

// keys are the keys that a name cannot be typed for.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"f12": {Code: tea.KeyF12}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace}, "space": {Code: tea.KeySpace, Text: " "},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
	"ctrl+g": {Code: 'g', Mod: tea.ModCtrl}, "ctrl+j": {Code: 'j', Mod: tea.ModCtrl}, "ctrl+home": {Code: tea.KeyHome, Mod: tea.ModCtrl},
}

// press presses keys by their names, and types all other words.
func (d *driver) press(words ...string) {
	for _, word := range words {
		if key, ok := keys[word]; ok {
			d.send(key)
			continue
		}
		for _, r := range word {
			d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// rows returns what a terminal of the given size shows.
func (d *driver) rows(width, height int) []string {
	d.t.Helper()
	d.send(tea.WindowSizeMsg{Width: width, Height: height})
	view := d.model.View()
	terminal := vt.NewEmulator(width, height)
	if _, err := terminal.WriteString(strings.ReplaceAll(view.Content, "\n", "\r\n")); err != nil {
		d.t.Fatal(err)
	}
	rows := strings.Split(terminal.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " \r")
	}
	if c := view.Cursor; c != nil && (c.X < 0 || c.Y < 0 || c.X >= width || c.Y >= height) {
		d.t.Errorf("the cursor is at %d, %d of %dx%d", c.X, c.Y, width, height)
	}
	return rows
}

// sizes are the terminals of the golden screens.
var sizes = [][2]int{{80, 24}, {120, 40}, {40, 12}}

// checkGolden compares the text of the screen with testdata at each size.
func (d *driver) checkGolden(name string) {
	d.t.Helper()
	for _, size := range sizes {
		got := strings.Join(d.rows(size[0], size[1]), "\n") + "\n"
		path := filepath.Join("testdata", fmt.Sprintf("%s-%dx%d.txt", name, size[0], size[1]))
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				d.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				d.t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			d.t.Fatal(err)
		}
		if got != string(want) {
			d.t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
		}
	}
}

// shows reports whether the screen shows a text.
func (d *driver) shows(text string) bool {
	return strings.Contains(strings.Join(d.rows(80, 24), "\n"), text)
}

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

func approval() *form.Form {
	return &form.Form{
		Title: "Run files.write?", Body: "files.write wants to run: may be destructive\n  │ path: a.txt\n  │ text: hello",
		Actions: []form.Action{{Key: "y", Word: "y", About: "run it once", Skips: true}, {Key: "S", Word: "server", About: "run every tool of files", Skips: true}, {Key: "n", Word: "n", About: "do not run it", Skips: true}},
		Leave:   form.Action{Word: "leave", About: "refuses"},
	}
}

func TestScreenApproval(t *testing.T) {
	d := newDriver(t)
	answered := []string{}
	d.send(Asked{approval(), func(word string) { answered = append(answered, word) }})
	d.press("y")
	d.checkGolden("approval")
	d.checkStyles("approval")
	d.rows(80, 24) // shows the whole call again
	d.press("es and more", "enter")
	if len(answered) > 0 {
		t.Errorf("words that begin with an answer have answered %q", answered)
	}
	d.press("S", "enter")
	if !slices.Equal(answered, []string{"server"}) {
		t.Errorf("answered %q", answered)
	}
}

// A form does not take the keys of a user who is writing.
func TestScreenAskedWhileWriting(t *testing.T) {
	d := newDriver(t)
	answered := ""
	d.press("I write")
	d.send(Asked{approval(), func(word string) { answered = word }})
	d.press(" y", "enter")
	if answered != "" || !slices.Equal(d.told, []string{"submit I write y"}) {
		t.Errorf("answered %q, told %q", answered, d.told)
	}
	d.press("n", "enter")
	if answered != "" {
		t.Errorf("answered %q", answered)
	}
}

func TestScreenForm(t *testing.T) {
	d := newDriver(t)
	answered := ""
	f := &form.Form{
		Title: "tester (a command) asks:", Body: "Who are you?",
		Fields: []form.Field{
			{Label: "Your name (text)", About: "As on your passport"},
			{Label: "agree (yes or no)", Kind: form.OneOf, Choices: []string{"yes", "no"}},
			{Label: "days", Kind: form.SomeOf, Choices: []string{"mon", "tue", "wed"}},
		},
		Actions: []form.Action{{Word: "send", About: "send this to tester"}, {Word: "decline", About: "decline", Skips: true}},
		Leave:   form.Action{Word: "leave", About: "leaves it unanswered"},
	}
	f.Fields[0].Check = func() error {
		if f.Fields[0].Value == "" {
			return fmt.Errorf("an answer is needed")
		}
		return nil
	}
	d.send(Asked{f, func(word string) { answered = word }})
	d.press("enter", "y", "enter", "space", "w", "enter", "enter")
	d.checkGolden("form")
	d.checkStyles("form")
	if answered != "" {
		t.Error("an invalid form was sent")
	}
	d.press("Ada", "enter", "enter", "enter", "enter")
	if answered != "send" || f.Fields[0].Value != "Ada" || !f.Fields[1].Chosen[0] || !f.Fields[2].Chosen[0] || f.Fields[2].Chosen[1] || !f.Fields[2].Chosen[2] {
		t.Errorf("%q, %+v", answered, f.Fields)
	}
}

func TestScreenFormIsWithdrawn(t *testing.T) {
	d := newDriver(t)
	first, second := approval(), approval()
	second.Title = "Run it again?"
	answered := ""
	d.send(Asked{first, func(string) { answered = "first" }}, Asked{second, func(string) { answered = "second" }}, Withdrawn{first})
	if !d.shows("Run it again?") {
		t.Error("the second form is not shown")
	}
	d.press("esc")
	if answered != "second" || d.shows("Run it again?") {
		t.Errorf("answered %q", answered)
	}
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

// stripStyles removes SGR sequences.
func stripStyles(text string) string {
	for {
		i := strings.Index(text, "\x1b[")
		if i < 0 {
			return text
		}
		end := i + 2
		for end < len(text) && strings.IndexByte("0123456789;:", text[end]) >= 0 {
			end++
		}
		if end == len(text) || text[end] != 'm' {
			return text
		}
		text = text[:i] + text[end+1:]
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
	d.press("esc", "esc")
	if d.told[len(d.told)-1] != "edit" {
		t.Errorf("told %q", d.told)
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

// A pasted path of an image attaches it, and stands apart from the words before it. Other pasted text
// is text.
func TestScreenPastesImage(t *testing.T) {
	d := newDriver(t)
	d.press("look")
	d.send(tea.PasteMsg{Content: "a.png"}, tea.PasteMsg{Content: "at b.c"}, tea.PasteMsg{Content: " x\ny"})
	if text := d.model.composer.Text(); text != "look @a.png at b.c x\ny" {
		t.Errorf("the input is %q", text)
	}
}

// What the user types behind a pasted path comes behind it, however long the host looks at the file.
func TestScreenHoldsInput(t *testing.T) {
	d := newDriver(t)
	_, command := d.model.Update(tea.PasteMsg{Content: "a.png"})
	d.press("look", "enter", "next")
	d.send(tea.PasteMsg{Content: "b.png"})
	d.press("end")
	if text := d.model.composer.Text(); text != "" || len(d.told) > 0 {
		t.Errorf("the input is %q, told %q", text, d.told)
	}
	_, command = d.model.Update(command())
	for command != nil {
		var next tea.Cmd
		switch result := command().(type) {
		case tea.BatchMsg:
			for _, c := range result {
				if c != nil {
					_, next = d.model.Update(c())
				}
			}
		case nil:
		default:
			_, next = d.model.Update(result)
		}
		command = next
	}
	if text := d.model.composer.Text(); !slices.Equal(d.told, []string{"submit @a.png look"}) || text != "next @b.png end" {
		t.Errorf("told %q, and the input is %q", d.told, text)
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

// A key among 10,000 messages and an unfolded result of 5 MiB. Each round draws two keys; a key may take
// 50 ms of the processor.
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
