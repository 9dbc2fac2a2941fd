package term

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// keyboard reads keys and can stop waiting when a context ends. As with [Lines], the system read
// continues in the background, and the next call receives its keys.
type keyboard struct {
	from    io.Reader
	pending chan chunk    // the read in progress, or nil
	tabs    chan struct{} // holds a token if [Console.CompleteAgain] was called; may be nil
}

// errTab is the error of a read that ended because of a token in tabs.
var errTab = errors.New("Tab again")

// chunk is the outcome of one read.
type chunk struct {
	text []byte
	err  error
}

// readChunk returns the next keys, [errTab], or the cause of ctx if it ends first.
func (k *keyboard) readChunk(ctx context.Context) ([]byte, error) {
	if k.pending == nil {
		got := make(chan chunk, 1)
		k.pending = got
		go func() {
			buffer := make([]byte, 1024)
			n, err := k.from.Read(buffer)
			got <- chunk{buffer[:n], err}
		}()
	}
	select {
	case c := <-k.pending:
		k.pending = nil
		return c.text, c.err
	case <-k.tabs:
		return nil, errTab
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A terminal in bracketed paste mode sends these sequences before and after pasted text.
const pasteStart, pasteEnd = "\x1b[200~", "\x1b[201~"

// Line breaks and tabs of pasted text appear as symbols in the edited line. Typeable replaces them
// by the symbols; typedControls restores them.
var (
	Typeable      = strings.NewReplacer("\r\n", "␤", "\r", "␤", "\n", "␤", "\t", "␉")
	typedControls = strings.NewReplacer("␤", "\n", "␉", "\t")
)

// editor is the stream of keys for [term.Terminal]. A read never goes past a key that ends a line,
// so the terminal does not consume keys of the next line.
type editor struct {
	keys *keyboard
	out  io.Writer
	ctx  context.Context // of the current ReadLine

	unsplit     []byte // read from the keyboard, pastes not yet separated
	ready       []byte // for the next Read
	pasting     bool   // unsplit begins within a paste
	interrupted bool   // the line was ended by Ctrl-C
	lastKey     byte   // the last byte of the last Read
}

const ctrlC, ctrlD = 3, 4

// Read implements [io.Reader] for [term.Terminal]. It turns Ctrl-C into Enter and sets interrupted.
func (e *editor) Read(p []byte) (int, error) {
	for len(e.ready) == 0 {
		text, err := e.keys.readChunk(e.ctx)
		if err == errTab {
			if e.lastKey != '\t' || len(e.unsplit) > 0 || len(p) == 0 { // Tab is no longer the last key
				continue
			}
			text, err = []byte{'\t'}, nil
		}
		if err != nil {
			return 0, err
		}
		e.unsplit = append(e.unsplit, text...)
		e.splitPastes()
	}
	n := e.readableLen(len(p))
	copy(p, e.ready[:n])
	e.ready = e.ready[n:]
	if n == 1 && p[0] == ctrlC {
		p[0], e.interrupted = '\r', true
	}
	if n > 0 {
		e.lastKey = p[n-1]
	}
	return n, nil
}

// readableLen returns the number of ready bytes that the next Read returns, limit at most. A key
// that ends a line is returned alone.
func (e *editor) readableLen(limit int) int {
	n := bytes.IndexAny(e.ready, "\r\n\x03\x04")
	switch {
	case n < 0:
		n = len(e.ready)
	case n == 0:
		n = 1
	}
	return min(n, limit)
}

// Write implements [io.Writer] for [term.Terminal].
func (e *editor) Write(p []byte) (int, error) { return e.out.Write(p) }

// splitPastes moves unsplit bytes to ready and sanitizes pasted text. Bytes that may begin a
// sequence or a character stay in unsplit until more arrive.
func (e *editor) splitPastes() {
	for len(e.unsplit) > 0 {
		mark := pasteStart
		if e.pasting {
			mark = pasteEnd
		}
		at := bytes.Index(e.unsplit, []byte(mark))
		whole := at
		if at < 0 {
			whole = len(e.unsplit) - partialMarkLen(e.unsplit, mark)
		}
		if at < 0 && e.pasting {
			whole = completeLen(e.unsplit[:whole])
		}
		if e.pasting {
			e.ready = append(e.ready, sanitizePaste(e.unsplit[:whole])...)
		} else {
			e.ready = append(e.ready, e.unsplit[:whole]...)
		}
		if at < 0 {
			e.unsplit = append([]byte(nil), e.unsplit[whole:]...)
			return
		}
		e.ready = append(e.ready, mark...)
		e.unsplit, e.pasting = e.unsplit[at+len(mark):], !e.pasting
	}
}

// completeLen returns the length of pasted text without a trailing incomplete character and without
// a trailing carriage return, which may be the first half of a line break.
func completeLen(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if last[0] == '\r' || !utf8.FullRune(last) {
				return len(text) - n
			}
			break
		}
	}
	return len(text)
}

// partialMarkLen returns the length of the longest suffix of text that may begin mark. Waiting for
// the rest delays no key: the terminal package waits after an Escape, too.
func partialMarkLen(text []byte, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, []byte(mark[:n])) {
			return n
		}
	}
	return 0
}

// sanitizePaste returns pasted text as part of one line, without control characters.
func sanitizePaste(text []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, Typeable.Replace(string(text)))
}

// insertText puts text into the line as if the user had pasted it.
func (e *editor) insertText(text string) {
	e.ready = append([]byte(pasteStart+sanitizePaste([]byte(text))+pasteEnd), e.ready...)
}

// discardInput drops keys that have arrived but were not read.
func (e *editor) discardInput() {
	e.unsplit, e.ready, e.pasting = nil, nil, false
	select {
	case <-e.keys.pending:
		e.keys.pending = nil
	default:
	}
}
