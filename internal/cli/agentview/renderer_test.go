package agentview

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

var updateShown = flag.Bool("update-shown", false, "write the golden files of what is shown anew")

// shownStep is an event for the renderer, some time after the event before it.
type shownStep struct {
	after time.Duration
	event agent.Event
	do    func(r *Renderer)
}

func newCall(id, tool, input string) agent.CallStarted {
	return agent.CallStarted{Call: mcp.ToolUse{ID: id, Name: tool, Input: json.RawMessage(input)}}
}

func newCallEnd(call agent.CallStarted, text string, took time.Duration) agent.CallEnded {
	id := call.Call.ID
	return agent.CallEnded{Call: call.Call, Result: mcp.ToolResultContent{ToolUseID: id, Content: []mcp.Content{mcp.Text(text)}}, Took: took}
}

func newProgress(id string, done, total float64, message string) agent.CallProgressed {
	return agent.CallProgressed{Call: mcp.ToolUse{ID: id}, ProgressParams: mcp.ProgressParams{Progress: done, Total: total, Message: message}}
}

func stateChange(s agent.State) shownStep {
	return shownStep{event: agent.StateChanged{State: s, Step: 1}}
}

func atOnce(e agent.Event) shownStep { return shownStep{event: e} }

func afterDelay(d time.Duration, e agent.Event) shownStep { return shownStep{after: d, event: e} }

// shownRuns returns the events of runs by the names of their golden files.
func shownRuns() map[string][]shownStep {
	read, buy, look := newCall("1", "files__read", `{"path":"notes/a long name.txt","limit":100}`),
		newCall("2", "shop__buy", `{"what":["cheese",{"n":2}]}`), newCall("3", "files__look", `{}`)
	failed := newCallEnd(buy, "out of cheese\nand of wine", 10*time.Millisecond)
	failed.Result.IsError = true
	picture := newCallEnd(look, "behold", time.Second)
	picture.Result.Content = append(picture.Result.Content, mcp.Image(make([]byte, 3000), "image/png"))
	tick := func(d time.Duration) shownStep { return shownStep{after: d, do: (*Renderer).Tick} }
	return map[string][]shownStep{
		"answer": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Reasoning: "The user greets me. "}), tick(2 * time.Second), atOnce(agent.Delta{Reasoning: "I greet back."}),
			atOnce(agent.Delta{Text: "Hello "}), atOnce(agent.Delta{Text: "there.\n\nHow are"}), tick(time.Second), atOnce(agent.Delta{Text: " you?"}),
			atOnce(agent.Delta{Message: new(agent.Message)}), stateChange(agent.Finished), atOnce(agent.Ended{Reason: agent.Answered, Steps: 1, Usage: agent.Usage{Input: 12345, Cached: 1000, Output: 20}}),
		},
		"calls": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Text: "Let me see."}), atOnce(agent.Delta{Message: new(agent.Message)}), stateChange(agent.Acting),
			atOnce(read), atOnce(buy),
			afterDelay(1500*time.Millisecond, newProgress("1", 1, 4, "reading")), tick(time.Second),
			afterDelay(0, failed), afterDelay(0, newCallEnd(read, strings.Repeat("ä", 5000), 83*time.Second)),
			atOnce(look), afterDelay(time.Second, picture),
			stateChange(agent.Thinking), atOnce(agent.Delta{Text: "There."}), atOnce(agent.Delta{Message: new(agent.Message)}), stateChange(agent.Finished), atOnce(agent.Ended{Reason: agent.Answered, Steps: 2}),
		},
		"refusals": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Message: new(agent.Message)}), stateChange(agent.Acting),
			atOnce(agent.Approval{Call: mcp.ToolUse{ID: "1", Name: "files__write", Input: json.RawMessage(`{"path":"x"}`)}, Server: "files", By: "user", Reason: "the user refused: not there"}),
			atOnce(agent.CallEnded{Call: mcp.ToolUse{ID: "1", Name: "files__write", Input: json.RawMessage(`{"path":"x"}`)}, Refusal: "the user refused: not there"}),
			atOnce(agent.CallEnded{Call: mcp.ToolUse{ID: "2", Name: "x"}, Refusal: "there is no tool x"}),
			atOnce(agent.Approval{Server: "everything", Reason: "the user refused"}),
			atOnce(agent.Approval{Call: mcp.ToolUse{ID: "3", Name: "files__read"}, Allowed: true, By: "annotation"}),
		},
		"remarks": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Text: "One"}),
			atOnce(agent.ToolsChanged{Added: []string{"a__x", "a__y", "b__1", "b__2", "b__3", "b__4", "b__5", "b__6"}, Removed: []string{"c__z", "plain"}}),
			atOnce(agent.ResourcesChanged{Resources: []agent.Resource{
				{Resource: mcp.Resource{URI: "dowel://a/x://1"}, Server: "a"}, {Resource: mcp.Resource{URI: "y:\x1b[2J\u202e2"}, Server: "b"}, {Resource: mcp.Resource{URI: "z:3"}}}}),
			atOnce(agent.Delta{Notice: "the model called x, which is taken for a__x"}),
			atOnce(agent.Compacted{Before: 90000, After: 12000, Summary: "The user wants\ncheese. " + strings.Repeat("And more. ", 50)}),
			atOnce(agent.Delta{Text: "\nTwo"}), atOnce(agent.Delta{Message: new(agent.Message)}),
			stateChange(agent.Finished), atOnce(agent.Ended{Reason: agent.BudgetSpent, Steps: 30}),
		},
		"failure": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Reasoning: "Hm."}), atOnce(agent.Delta{Text: "I was about to"}), stateChange(agent.Failed),
			{do: func(r *Renderer) { r.Idle(); r.Trouble(errors.New("the model has not replied:\nno key")) }},
		},
		"escapes": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Text: "red \x1b[31mtext\x1b[0m\x07 \u202eback"}), atOnce(agent.Delta{Reasoning: "\x1b]0;title\x07sly"}), stateChange(agent.Acting),
			atOnce(newCall("1", "a__\x1b[2Jb", `{"k\u001b[1m":"\u001b[2Jv"}`)), atOnce(newCallEnd(newCall("1", "a__\x1b[2Jb", `{"k\u001b[1m":"\u001b[2Jv"}`), "\x1b[2J", 0)),
		},
		"question": {
			stateChange(agent.Thinking), atOnce(agent.Delta{Text: "I ask"}), stateChange(agent.Waiting), {do: func(r *Renderer) { r.Hold(true) }},
			tick(time.Second), {do: func(r *Renderer) { r.Hold(false) }}, atOnce(agent.Delta{Text: "Thanks."}), {do: (*Renderer).Idle},
		},
	}
}

// TestShown compares the output with golden files: on one terminal, and on two separate streams.
func TestShown(t *testing.T) {
	devNull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer devNull.Close()
	for name, steps := range shownRuns() {
		t.Run(name, func(t *testing.T) {
			var tty, out, side bytes.Buffer
			screenOf := func(b *bytes.Buffer) *term.Screen { return term.NewScreen(b, func() {}) }
			onTTY := term.NewTerminalScreen(&tty, devNull, true)
			playSteps(NewRenderer(onTTY, onTTY), steps)
			playSteps(NewRenderer(screenOf(&out), screenOf(&side)), steps)
			got := "== terminal\n" + escapeControls(tty.String()) + "\n== output\n" + escapeControls(out.String()) + "\n== beside\n" + escapeControls(side.String())
			golden := filepath.Join("testdata", "shown", name+".golden")
			if *updateShown {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func playSteps(r *Renderer, steps []shownStep) {
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	for _, s := range steps {
		now = now.Add(s.after)
		if s.do != nil {
			s.do(r)
			continue
		}
		r.Event(s.event)
	}
}

// A thought of many pieces takes linear time and updates the status at most ten times a second.
func TestLongThought(t *testing.T) {
	devNull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer devNull.Close()
	var tty bytes.Buffer
	onTTY := term.NewScreen(&tty, func() {})
	onTTY.File = devNull
	r := NewRenderer(onTTY, onTTY)
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	r.Event(agent.StateChanged{State: agent.Thinking, Step: 1})
	const pieces = 5000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range pieces {
		now = now.Add(time.Millisecond)
		r.Event(agent.Delta{Reasoning: fmt.Sprintf("thought %d of many, and ", i)})
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("%d MiB were allocated", allocated>>20)
	}
	if n := strings.Count(tty.String(), "\r"); n < 20 || n > 60 { // ten times a second, for five
		t.Errorf("it was drawn %d times", n)
	}
	r.Tick()
	if last := tty.String(); !strings.HasSuffix(last, " of many, and") || !strings.Contains(last[strings.LastIndex(last, "\r"):], fmt.Sprintf("thought %d of", pieces-1)) {
		t.Errorf("the end is %q", last[max(0, len(last)-100):])
	}
	tty.Reset()
	r.Idle()
	if got := tty.String(); !strings.Contains(got, "thought: thought 0 of many, and thought 1") {
		t.Errorf("what is left is %q", got)
	}
}

// A note that comes in the middle of a line of the answer waits for its end.
func TestNoteWaitsForLine(t *testing.T) {
	devNull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer devNull.Close()
	var tty bytes.Buffer
	onTTY := term.NewTerminalScreen(&tty, devNull, false)
	r := NewRenderer(onTTY, onTTY)
	r.Event(agent.StateChanged{State: agent.Thinking, Step: 1})
	r.Event(agent.Delta{Text: "good mor"})
	r.Note("servers: %s", "one")
	r.Event(agent.Delta{Text: "ning"})
	r.Event(agent.StateChanged{State: agent.Finished, Step: 1})
	r.Idle()
	got := tty.String()
	if answer, note := strings.Index(got, "good morning"), strings.Index(got, "servers: one"); answer < 0 || note < answer {
		t.Errorf("got %q", got)
	}
}

// escapeControls makes control characters of a terminal visible.
func escapeControls(text string) string {
	return strings.NewReplacer("\x1b", "␛", "\r", "␍").Replace(text)
}

func TestBriefly(t *testing.T) {
	for _, test := range []struct {
		input string
		width int
		want  string
	}{
		{`{"a":1,"b":"x y","c":"plain","d":[1,{"e":null}]}`, 80, `a=1 b="x y" c=plain d=[1,{"e":null}]`},
		{`{"a":"` + strings.Repeat("x", 100) + `","b":2}`, 80, "a=" + strings.Repeat("x", 59) + "… b=2"},
		{`{"a":"abcdefgh"}`, 8, "a=abcde…"},
		{`{"a":""}`, 8, `a=""`},
		{`{"a":"false","b":false,"c":"12","d":"1e"}`, 80, `a="false" b=false c="12" d=1e`},
		{`{}`, 80, ""},
		{`nonsense`, 80, ""},
		{`{"a":1}`, 2, ""},
	} {
		if got := BrieflyInput(json.RawMessage(test.input), test.width); got != test.want {
			t.Errorf("%s: got %q, want %q", test.input, got, test.want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0.0s", 40 * time.Millisecond: "0.0s", 1500 * time.Millisecond: "1.5s", 2 * time.Second: "2s", 125 * time.Second: "2m05s"} {
		if got := display.Duration(d); got != want {
			t.Errorf("%v: got %s", d, got)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := display.Thousands(n); got != want {
			t.Errorf("%d: got %s", n, got)
		}
	}
}
