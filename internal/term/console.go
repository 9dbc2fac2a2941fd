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

// Console is the terminal of a conversation. The user edits a line on it; output that arrives
// meanwhile appears above that line. The terminal is in raw mode only while a line is being read
// and during [Console.Hold], so that Ctrl-C is a signal at any other time. All methods are safe for
// concurrent use.
type Console struct {
	In, Out *os.File
	keys    keyboard
	editor  editor
	History history
	// Complete is called when the user presses Tab. at is the cursor position. Complete returns the
	// line completed as far as possible, the new cursor position, and the possible completions. It
	// must return soon, because the user's keys wait for it; see [Console.CompleteAgain]. nil
	// disables Tab.
	Complete func(line string, at int) (string, int, []string)

	lineMu sync.Mutex // held while a line is being read

	mu        sync.Mutex
	line      *term.Terminal // while a line is being read
	savedMode *term.State    // the terminal's mode, while it is raw
}

// NewConsole returns a console that reads keys from in and writes to out. Both must be terminals.
func NewConsole(in, out *os.File) *Console {
	c := &Console{In: in, Out: out, keys: keyboard{from: in, tabs: make(chan struct{}, 1)}}
	c.editor = editor{keys: &c.keys, out: out}
	return c
}

// ErrInterrupted is the error of a line that the user ended with Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Question describes a line to read. The zero value reads a line without a prompt.
type Question struct {
	Prompt  string
	Prefill string // initial text of the line; the user can change it
	Answer  bool   // the line answers the program's question: no history, no completion
	Fresh   bool   // discard keys that were typed before
}

// ReadLine reads a line. If the user presses Ctrl-C, it returns the typed text and
// [ErrInterrupted]. Ctrl-D on an empty line returns [io.EOF]. If ctx ends, the error is its cause.
func (c *Console) ReadLine(ctx context.Context, a Question) (string, error) {
	c.lineMu.Lock() // a cancelled ReadLine must first restore the terminal
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
		_, _ = io.WriteString(c, "\n") // end the unfinished line
		return "", err
	}
	text = typedControls.Replace(text)
	if c.editor.interrupted {
		return text, ErrInterrupted
	}
	return text, nil
}

// discardInput drops keys that were typed but not read.
func (c *Console) discardInput() {
	flushInput(c.In)
	c.editor.discardInput()
}

// startEditing switches the terminal to raw mode and shows the prompt. The caller must call end
// after the line is read.
func (c *Console) startEditing(a Question) (_ *term.Terminal, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	restore, err := c.enterRawMode()
	if err != nil {
		return nil, nil, err
	}
	t := term.NewTerminal(&c.editor, a.Prompt)
	if width, height, err := term.GetSize(int(c.Out.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height) // the line is empty, so nothing can fail
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
		restore()
	}, nil
}

// enterRawMode puts the terminal into raw mode until restore is called. If the terminal is in raw
// mode already, restore does nothing. The caller holds c.mu for both calls.
func (c *Console) enterRawMode() (restore func(), err error) {
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
		_ = term.Restore(int(c.In.Fd()), before) // MakeRaw just succeeded
	}, nil
}

// Hold keeps the terminal in raw mode until release is called. Use it around a question of several
// lines: keys typed between two lines then belong to the next line. Hold discards keys that were
// typed before it.
func (c *Console) Hold() (release func()) {
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discardInput()
	restore, err := c.enterRawMode()
	if err != nil {
		return func() {} // ReadLine will report the error
	}
	return func() {
		c.lineMu.Lock()
		defer c.lineMu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		restore()
	}
}

// HideKeys keeps typed keys off the screen until show is called, so that they do not mix with
// output. They become part of the next line that is read without [Question].Fresh. Ctrl-C stays a
// signal. Lines can be read meanwhile. HideKeys does nothing if the terminal does not allow it.
func (c *Console) HideKeys() (show func()) {
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	restore, err := hideKeys(c.In)
	if err != nil {
		return func() {}
	}
	return func() {
		c.lineMu.Lock() // a cancelled ReadLine must first restore the mode with hidden keys
		defer c.lineMu.Unlock()
		restore()
	}
}

// CompleteAgain acts as if the user pressed Tab again, if Tab was the last key. Call it when
// Complete can return more completions than before.
func (c *Console) CompleteAgain() {
	select {
	case c.keys.tabs <- struct{}{}:
	default:
	}
}

// Write implements [io.Writer]. Output during the editing of a line appears above that line.
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

// completeLine handles Tab. It extends the line as far as all completions agree; if that adds
// nothing, it lists the completions.
func (c *Console) completeLine(t *term.Terminal, line string, at int, key rune) (string, int, bool) {
	if key != '\t' || c.Complete == nil {
		return "", 0, false
	}
	longer, to, choices := c.Complete(line, at)
	if longer == line && len(choices) > 0 {
		width := 80
		if w, _, err := term.GetSize(int(c.Out.Fd())); err == nil && w > 0 {
			width = w
		}
		_, _ = io.WriteString(t, strings.Join(Wrap(choices, width-1), "\n")+"\n")
	}
	return longer, to, true
}

// history holds the entered lines, oldest first, at most maxHistory of them.
type history struct{ entries []string }

const maxHistory = 500

// Add implements [term.History]. It ignores blank lines and a repetition of the latest line.
func (h *history) Add(entry string) {
	if strings.TrimSpace(entry) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return
	}
	h.entries = append(h.entries, entry)
	h.entries = h.entries[max(len(h.entries)-maxHistory, 0):]
}

// Len implements [term.History].
func (h *history) Len() int { return len(h.entries) }

// At implements [term.History]. Index 0 is the latest line.
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }

// acceptedHistory is a history that ignores lines ended by Ctrl-C.
type acceptedHistory struct {
	*history
	editor *editor
}

// Add implements [term.History].
func (h *acceptedHistory) Add(entry string) {
	if !h.editor.interrupted {
		h.history.Add(entry)
	}
}
