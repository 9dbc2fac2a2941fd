package term

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Console is the terminal of a conversation: lines are edited on it, and what is said meanwhile goes above the line. The
// terminal is in raw mode only while a line is being read, so that Ctrl-C is a signal at any other time.
type Console struct {
	In, Out *os.File
	keys    keyboard
	editor  editor
	History history
	// complete returns how a line can go on at a place, and what it may go on with; nil: in no way.
	Complete func(line string, at int) (string, int, []string)

	lineMu sync.Mutex // held while a line is being read

	mu        sync.Mutex
	line      *term.Terminal // while a line is being read
	savedMode *term.State    // the terminal's mode, while it is raw
}

func NewConsole(in, out *os.File) *Console {
	c := &Console{In: in, Out: out, keys: keyboard{from: in}}
	c.editor = editor{keys: &c.keys, out: out}
	return c
}

// ErrInterrupted is the error of a line that Ctrl-C has ended.
var ErrInterrupted = errors.New("interrupted")

// Question says how a line is read.
type Question struct {
	Prompt  string
	Prefill string // is there to be changed
	Answer  bool   // to a question: it is not remembered, and nothing completes it
	Fresh   bool   // what was typed before counts for nothing
}

// ReadLine reads a line. With Ctrl-C the error is errInterrupted, beside what was typed; with Ctrl-D io.EOF; and the cause of ctx
// where that ends.
func (c *Console) ReadLine(ctx context.Context, a Question) (string, error) {
	c.lineMu.Lock() // a question that nobody waits for any more gives the terminal back first
	defer c.lineMu.Unlock()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if a.Fresh {
		c.discardInput()
	}
	c.editor.ctx, c.editor.interrupted = ctx, false
	if a.Prefill != "" {
		c.editor.insertText(a.Prefill)
	}
	t, end, err := c.startEditing(a)
	if err != nil {
		return "", err
	}
	text, err := t.ReadLine()
	end()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	if err != nil {
		_, _ = io.WriteString(c, "\n") // the line has no end yet
		return "", err
	}
	text = typedControls.Replace(text)
	if c.editor.interrupted {
		return text, ErrInterrupted
	}
	return text, nil
}

// discardInput forgets what was typed and not read.
func (c *Console) discardInput() {
	flushInput(c.In)
	c.editor.discardInput()
}

// startEditing begins to edit a line.
func (c *Console) startEditing(a Question) (_ *term.Terminal, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back, err := c.enterRawMode()
	if err != nil {
		return nil, nil, err
	}
	t := term.NewTerminal(&c.editor, a.Prompt)
	if width, height, err := term.GetSize(int(c.Out.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height) // nothing is on the line that could not be written
	}
	t.SetBracketedPasteMode(true)
	if a.Answer {
		t.History = &history{}
	} else {
		t.History = &acceptedHistory{&c.History, &c.editor}
		t.AutoCompleteCallback = func(line string, at int, key rune) (string, int, bool) { return c.completeLine(t, line, at, key) }
	}
	c.line = t
	return t, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.SetBracketedPasteMode(false)
		c.line = nil
		back()
	}, nil
}

// enterRawMode puts the terminal into raw mode until back is called, unless it is in it; c.mu is held, then too.
func (c *Console) enterRawMode() (back func(), err error) {
	if c.savedMode != nil {
		return func() {}, nil
	}
	before, err := term.MakeRaw(int(c.In.Fd()))
	if err != nil {
		return nil, err
	}
	c.savedMode = before
	return func() {
		c.savedMode = nil
		_ = term.Restore(int(c.In.Fd()), before) // it was possible a moment ago
	}, nil
}

// Hold has the terminal in raw mode until it is released, for a question of several lines: what is typed between them is a key
// like any other. What was typed before is no answer.
func (c *Console) Hold() (release func()) {
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discardInput()
	back, err := c.enterRawMode()
	if err != nil {
		return func() {} // reading says why
	}
	return func() {
		c.lineMu.Lock()
		defer c.lineMu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		back()
	}
}

// Write implements [io.Writer]: what is said while a line is edited goes above it.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.line != nil:
		return c.line.Write(p)
	case c.savedMode != nil:
		if _, err := c.Out.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return c.Out.Write(p)
}

// completeLine answers Tab: the line goes on as far as that is clear, and else what it may go on with is shown.
func (c *Console) completeLine(t *term.Terminal, line string, at int, key rune) (string, int, bool) {
	if key != '\t' || c.Complete == nil {
		return "", 0, false
	}
	longer, to, choices := c.Complete(line, at)
	if longer == line && len(choices) > 1 {
		width := 80
		if w, _, err := term.GetSize(int(c.Out.Fd())); err == nil && w > 0 {
			width = w
		}
		_, _ = io.WriteString(t, strings.Join(Wrap(choices, width-1), "\n")+"\n")
	}
	return longer, to, true
}

// history is what was entered before, the last one first.
type history struct{ entries []string }

const maxHistory = 500

// Add, Len and At implement [term.History].
func (h *history) Add(entry string) {
	if strings.TrimSpace(entry) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return
	}
	h.entries = append(h.entries, entry)
	h.entries = h.entries[max(len(h.entries)-maxHistory, 0):]
}
func (h *history) Len() int        { return len(h.entries) }
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }

// acceptedHistory keeps what is entered, and not what Ctrl-C has taken back.
type acceptedHistory struct {
	*history
	editor *editor
}

func (h *acceptedHistory) Add(entry string) {
	if !h.editor.interrupted {
		h.history.Add(entry)
	}
}
