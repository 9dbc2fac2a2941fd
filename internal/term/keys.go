package term

import (
	"bytes"
	"context"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// keyboard reads what is typed under a context. As with lines, a read that its context has left goes on, and what it brings is
// for the next one.
type keyboard struct {
	from    io.Reader
	pending chan chunk // the read that goes on; nil if none does
}

type chunk struct {
	text []byte
	err  error
}

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
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// What a terminal puts around text that is pasted, where it has been asked to.
const pasteStart, pasteEnd = "\x1b[200~", "\x1b[201~"

// A line that is edited is one line: what is pasted has these in place of ends of lines and of tabs.
var (
	Typeable      = strings.NewReplacer("\r\n", "␤", "\r", "␤", "\n", "␤", "\t", "␉")
	typedControls = strings.NewReplacer("␤", "\n", "␉", "\t")
)

// editor is the stream of keys that a line is edited with, one key that ends the line at a time.
type editor struct {
	keys *keyboard
	out  io.Writer
	ctx  context.Context // of the line that is read

	unsplit     []byte // as it came, not yet looked at
	ready       []byte // to be typed
	pasting     bool
	interrupted bool // the line was ended by Ctrl-C
}

const ctrlC, ctrlD = 3, 4

// Read implements [io.Reader] for the editor. Ctrl-C ends the line like Enter does; interrupted tells them apart.
func (e *editor) Read(p []byte) (int, error) {
	for len(e.ready) == 0 {
		text, err := e.keys.readChunk(e.ctx)
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
	return n, nil
}

// readableLen is how much may be typed at once: up to a key that ends a line, which comes alone, and no half of a paste.
func (e *editor) readableLen(most int) int {
	n := bytes.IndexAny(e.ready, "\r\n\x03\x04")
	switch {
	case n < 0:
		n = len(e.ready)
	case n == 0:
		n = 1
	}
	return min(n, most)
}

// Write implements [io.Writer] for the editor.
func (e *editor) Write(p []byte) (int, error) { return e.out.Write(p) }

// splitPastes takes pasted text apart from keys.
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

// completeLen is how much of pasted text can be taken before more has come: no half of a character, and of an end of a line.
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

// partialMarkLen is how much of the end of a text may be the beginning of a mark. The editor, too, waits for what follows an Escape.
func partialMarkLen(text []byte, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, []byte(mark[:n])) {
			return n
		}
	}
	return 0
}

// sanitizePaste makes pasted text a part of one line.
func sanitizePaste(text []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, Typeable.Replace(string(text)))
}

// insertText types text for the user, who can change it.
func (e *editor) insertText(text string) {
	e.ready = append([]byte(pasteStart+sanitizePaste([]byte(text))+pasteEnd), e.ready...)
}

// discardInput drops what was typed and not read.
func (e *editor) discardInput() {
	e.unsplit, e.ready, e.pasting = nil, nil, false
	select {
	case <-e.keys.pending:
		e.keys.pending = nil
	default:
	}
}
