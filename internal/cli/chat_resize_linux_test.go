package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/session"
	"golang.org/x/sys/unix"
)

// piecewiseModel is a model whose reply comes piece by piece.
type piecewiseModel struct {
	url    string
	pieces chan string // closed at the end of the reply
}

func startPiecewiseModel(t *testing.T) *piecewiseModel {
	t.Helper()
	unsetModels(t)
	m := &piecewiseModel{pieces: make(chan string)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		write := func(delta map[string]string, finish any) {
			chunk, err := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", chunk)
			_ = http.NewResponseController(w).Flush()
		}
		for {
			select {
			case text, ok := <-m.pieces:
				if !ok {
					write(map[string]string{}, "stop")
					fmt.Fprint(w, "data: [DONE]\n\n")
					return
				}
				write(map[string]string{"role": "assistant", "content": text}, nil)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(web.Close)
	m.url = web.URL + "/v1"
	return m
}

// resizable is a terminal that changes its size.
type resizable struct {
	*pty
	sizes []terminalSize
}

// terminalSize is a size of a terminal. What the program has written for the size before may come
// behind from, until it clears the screen. A real terminal shows that for a moment; the emulator
// cannot, because it panics when a region to scroll is larger than its screen.
type terminalSize struct {
	from          int
	columns, rows uint16
}

// resize changes the size, of which the system tells the program.
func (r *resizable) resize(columns, rows uint16) {
	r.t.Helper()
	r.sizes = append(r.sizes, terminalSize{len(r.output()), columns, rows})
	if err := unix.IoctlSetWinsize(int(r.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		r.t.Fatal(err)
	}
}

// clearedScreen begins the first drawing for another size.
const clearedScreen = "\x1b[H\x1b[2J"

// shown returns the text on the terminal after all output so far, or "" if nothing is drawn for its
// last size yet.
func (r *resizable) shown() string {
	r.t.Helper()
	terminal := vt.NewEmulator(80, 24)
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, terminal) // ends when the pipe of the answers is closed
	}()
	output, from := r.output(), 0
	write := func(to int) {
		if _, err := terminal.WriteString(output[from:to]); err != nil {
			r.t.Error(err)
		}
		from = to
	}
	isDrawn := true
	for _, s := range r.sizes {
		at := strings.Index(output[s.from:], clearedScreen)
		if isDrawn = at >= 0; !isDrawn {
			break
		}
		write(s.from + at)
		terminal.Resize(int(s.columns), int(s.rows))
	}
	write(len(output))
	text := terminal.String()
	if !isDrawn {
		text = ""
	}
	if err := terminal.InputPipe().(io.Closer).Close(); err != nil {
		r.t.Error(err)
	}
	<-answers
	return text
}

var itemNumber = regexp.MustCompile(`item-(\d{3})`)

// shownItems returns the numbers of the items on the terminal, from the top down.
func (r *resizable) shownItems() (numbers []int) {
	for _, found := range itemNumber.FindAllStringSubmatch(r.shown(), -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			r.t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// checkItems returns an error unless the terminal shows the items up to the last one, each once.
func (r *resizable) checkItems(last int) error {
	items := r.shownItems()
	for i, n := range items {
		if n != last-len(items)+1+i {
			return fmt.Errorf("the items are %v, and the last one is %d:\n%s", items, last, r.shown())
		}
	}
	if len(items) == 0 {
		return fmt.Errorf("there is no item, and the last one is %d:\n%s", last, r.shown())
	}
	return nil
}

// A terminal that is resized while a reply streams shows the end of the reply: each item once, in
// its order, none left out. The conversation has all of the reply.
func TestChatScreenResize(t *testing.T) {
	state := ownState(t)
	m := startPiecewiseModel(t)
	r := &resizable{pty: onTerminal(t, withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...)}
	r.awaitScreen("1 ready")
	r.typeText("Write.\r")
	sizes := [][2]uint16{{120, 40}, {40, 12}, {100, 30}, {30, 50}, {80, 8}, {132, 24}, {80, 24}}
	last := 0
	var reply strings.Builder
	for round := range 3 * len(sizes) {
		size := sizes[round%len(sizes)]
		for i := range 4 {
			last++
			text := fmt.Sprintf("- item-%03d of a list with words enough to wrap on a narrow terminal\n", last)
			reply.WriteString(text)
			m.pieces <- text[:10]
			if i == 2 {
				r.resize(size[0], size[1])
			}
			m.pieces <- text[10:]
		}
		polltest.UntilNil(t, func() error { return r.checkItems(last) })
	}
	close(m.pieces)
	polltest.Until(t, "the end of the reply", func() bool { return strings.Contains(r.shown(), "1 step") })
	r.typeText("\x04")
	r.expectExit(exit.OK)
	r.checkTerminalRestored()
	saved, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	_, held, err := session.Load(saved[0])
	if err != nil || !slices.ContainsFunc(held.Messages, func(m agent.Message) bool { return m.Text() == reply.String() }) {
		t.Errorf("the conversation holds %+v, %v", held, err)
	}
}

// Esc stops a reply. The text that has arrived stays on the screen and in the conversation.
func TestChatScreenKeepsPartialReply(t *testing.T) {
	state := ownState(t)
	m := startPiecewiseModel(t)
	p := onTerminal(t, withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...)
	p.awaitScreen("1 ready")
	p.typeText("Write.\r")
	m.pieces <- "The first half\n\n"
	p.awaitScreen("The first half")
	p.typeText("\x1b")
	p.awaitScreen("stopped; the conversation until then is kept")
	p.typeText("Go on.\r")
	m.pieces <- "and the second."
	close(m.pieces)
	p.awaitScreen("The first half", "and the second.", "1 step")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	saved, err := session.List(filepath.Join(state, "dowel", "sessions"))
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	_, held, err := session.Load(saved[0].Path)
	if err != nil || len(held.Messages) != 4 || !strings.Contains(held.Messages[1].Text(), "The first half") {
		t.Errorf("the conversation holds %+v, %v", held, err)
	}
}
