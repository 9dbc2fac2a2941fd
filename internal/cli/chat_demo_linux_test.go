package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/vt"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

var recordDemo = flag.Bool("demo", false, "record TestChatTour in "+demoPath)

// demoPath is the recording of the tour, in asciinema's format of version 2: a header, and a line
// for each piece of output with its time in seconds.
const demoPath = "../../docs/demo.cast"

// demoHeader is the first line of the recording.
type demoHeader struct {
	Version int               `json:"version"`
	Width   int               `json:"width"`
	Height  int               `json:"height"`
	Title   string            `json:"title"`
	Env     map[string]string `json:"env"`
}

// Times of the recording in seconds. They do not depend on the machine.
const (
	timeOfKey   = 0.07
	timeOfPiece = 0.03
	timeOfRest  = 2.0 // after each step
)

// recorder records a terminal with a clock of its own. A nil recorder records nothing.
type recorder struct {
	pty    *pty
	clock  float64
	taken  int // of the terminal's output
	events []demoEvent
}

// demoEvent is a piece of output.
type demoEvent struct {
	at   float64
	text string
}

var tourKey = regexp.MustCompile(`\x1b\[\d+~|(?s:.)`)

// typeText types like a person while it records.
func (r *recorder) typeText(p *pty, keys string) {
	if r == nil {
		p.typeText(keys)
		return
	}
	for _, key := range tourKey.FindAllString(keys, -1) {
		before := len(p.output())
		p.typeText(key)
		if key >= " " { // a character is drawn at once
			polltest.Until(p.t, "the terminal shows "+key, func() bool { return len(p.output()) > before })
		}
		r.take()
		r.clock += timeOfKey
	}
}

// rest lets the viewer read what has come.
func (r *recorder) rest() {
	if r != nil {
		r.take()
		r.clock += timeOfRest
	}
}

// startQueries asks the terminal for its abilities; a player's terminal must not answer.
var startQueries = strings.NewReplacer("\x1b[?2026$p", "", "\x1b[?2027$p", "", "\x1b]11;?\a", "", "\x1b[?u", "", "\x1b[>q", "", "\x1b[c", "")

// take records the output that has come.
func (r *recorder) take() {
	r.pty.mu.Lock()
	said, reads := r.pty.said.String(), r.pty.reads
	r.pty.mu.Unlock()
	for _, end := range reads {
		for end > r.taken && end < len(said) && !utf8.RuneStart(said[end]) {
			end--
		}
		if end <= r.taken {
			continue
		}
		text := tourAddress.ReplaceAllString(startQueries.Replace(said[r.taken:end]), "127.0.0.1:11434")
		r.taken = end
		if text != "" {
			r.events = append(r.events, demoEvent{r.clock, text})
			r.clock += timeOfPiece
		}
	}
}

// save writes the recording.
func (r *recorder) save(t *testing.T) {
	t.Helper()
	if r == nil {
		return
	}
	r.take()
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(demoHeader{2, 80, 24, "dowel chat", map[string]string{"TERM": "xterm-256color"}}); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.events {
		if err := lines.Encode([]any{json.Number(fmt.Sprintf("%.2f", e.at)), "o", e.text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(demoPath, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readDemo reads the recording.
func readDemo(t *testing.T) (header demoHeader, events []demoEvent) {
	t.Helper()
	data, err := os.ReadFile(demoPath)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		if n == 1 {
			if err := json.Unmarshal(lines.Bytes(), &header); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var kind string
		var e demoEvent
		if err := json.Unmarshal(lines.Bytes(), &[]any{&e.at, &kind, &e.text}); err != nil || kind != "o" {
			t.Fatalf("line %d is %s, %v", n, lines.Bytes(), err)
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return header, events
}

var machinePath = regexp.MustCompile(`/(tmp|home|root|Users|var|private)/`)

// The recording plays all screens of the guide, names no folder of the machine that recorded it,
// and leaves the terminal as it was. make demo renews it.
func TestDemo(t *testing.T) {
	t.Parallel()
	header, events := readDemo(t)
	if header.Version != 2 || header.Width != 80 || header.Height != 24 || len(events) < 50 {
		t.Fatalf("%+v, %d events", header, len(events))
	}
	missing := map[string]string{}
	for _, step := range tourSteps {
		if step.name == "" {
			continue
		}
		want, err := os.ReadFile(filepath.Join("testdata", "screens", "chat-"+step.name+"-80.txt"))
		if err != nil {
			t.Fatal(err)
		}
		missing[string(want)] = step.name
	}
	terminal := vt.NewEmulator(header.Width, header.Height)
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, terminal) // ends when the pipe of the answers is closed
	}()
	var whole strings.Builder
	for i, e := range events {
		if i > 0 && e.at < events[i-1].at {
			t.Errorf("event %d is at %.2f, after %.2f", i, e.at, events[i-1].at)
		}
		whole.WriteString(e.text)
		if _, err := terminal.WriteString(e.text); err != nil {
			t.Fatal(err)
		}
		delete(missing, strings.Join(maskTour(terminal.String(), &testUser{home: "no home", project: "no project"}), "\n")+"\n")
	}
	if err := terminal.InputPipe().(io.Closer).Close(); err != nil {
		t.Error(err)
	}
	<-answers
	for screen, name := range missing {
		t.Errorf("the recording never shows %s: make demo renews it\n%s", name, screen)
	}
	if found := machinePath.FindString(whole.String()); found != "" {
		t.Errorf("the recording names a folder in %s", found)
	}
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h"} {
		if strings.LastIndex(whole.String(), on) > strings.LastIndex(whole.String(), off) {
			t.Errorf("%q is not taken back", on)
		}
	}
	if end := events[len(events)-1].at; end < 10 || end > 120 {
		t.Errorf("the recording takes %.0f s", end)
	}
}
