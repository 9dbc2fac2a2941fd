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
	reading chan chunk // the read that goes on; nil if none does
}

type chunk struct {
	text []byte
	err  error
}

func (k *keyboard) next(ctx context.Context) ([]byte, error) {
	if k.reading == nil {
		got := make(chan chunk, 1)
		k.reading = got
		go func() {
			buffer := make([]byte, 1024)
			n, err := k.from.Read(buffer)
			got <- chunk{buffer[:n], err}
		}()
	}
	select {
	case c := <-k.reading:
		k.reading = nil
		return c.text, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// What a terminal puts around text that is pasted, where it has been asked to.
const pasteStart, pasteEnd = "\x1b[200~", "\x1b[201~"

// A line that is edited is one line: what is pasted has these in place of ends of lines and of tabs.
var (
	Typeable = strings.NewReplacer("\r\n", "␤", "\r", "␤", "\n", "␤", "\t", "␉")
	typed    = strings.NewReplacer("␤", "\n", "␉", "\t")
)

// editor is the stream of keys that a line is edited with, one key that ends the line at a time.
type editor struct {
	keys *keyboard
	out  io.Writer
	ctx  context.Context // of the line that is read

	raw         []byte // as it came, not yet looked at
	ready       []byte // to be typed
	pasting     bool
	interrupted bool // the line was ended by Ctrl-C
}

const ctrlC, ctrlD = 3, 4

// Read implements [io.Reader] for the editor. Ctrl-C ends the line like Enter does; interrupted tells them apart.
func (t *editor) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		text, err := t.keys.next(t.ctx)
		if err != nil {
			return 0, err
		}
		t.raw = append(t.raw, text...)
		t.sort()
	}
	n := t.typeable(len(p))
	copy(p, t.ready[:n])
	t.ready = t.ready[n:]
	if n == 1 && p[0] == ctrlC {
		p[0], t.interrupted = '\r', true
	}
	return n, nil
}

// typeable is how much may be typed at once: up to a key that ends a line, which comes alone, and no half of a paste.
func (t *editor) typeable(most int) int {
	n := bytes.IndexAny(t.ready, "\r\n\x03\x04")
	switch {
	case n < 0:
		n = len(t.ready)
	case n == 0:
		n = 1
	}
	return min(n, most)
}

// Write implements [io.Writer] for the editor.
func (t *editor) Write(p []byte) (int, error) { return t.out.Write(p) }

// sort takes pasted text apart from keys.
func (t *editor) sort() {
	for len(t.raw) > 0 {
		mark := pasteStart
		if t.pasting {
			mark = pasteEnd
		}
		at := bytes.Index(t.raw, []byte(mark))
		whole := at
		if at < 0 {
			whole = len(t.raw) - partial(t.raw, mark)
		}
		if at < 0 && t.pasting {
			whole = certain(t.raw[:whole])
		}
		if t.pasting {
			t.ready = append(t.ready, pasted(t.raw[:whole])...)
		} else {
			t.ready = append(t.ready, t.raw[:whole]...)
		}
		if at < 0 {
			t.raw = append([]byte(nil), t.raw[whole:]...)
			return
		}
		t.ready = append(t.ready, mark...)
		t.raw, t.pasting = t.raw[at+len(mark):], !t.pasting
	}
}

// certain is how much of pasted text can be taken before more has come: no half of a character, and of an end of a line.
func certain(text []byte) int {
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

// partial is how much of the end of a text may be the beginning of a mark. The editor, too, waits for what follows an Escape.
func partial(text []byte, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, []byte(mark[:n])) {
			return n
		}
	}
	return 0
}

// pasted makes pasted text a part of one line.
func pasted(text []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, Typeable.Replace(string(text)))
}

// prefill types text for the user, who can change it.
func (t *editor) prefill(text string) {
	t.ready = append([]byte(pasteStart+pasted([]byte(text))+pasteEnd), t.ready...)
}

// forget drops what was typed and not read.
func (t *editor) forget() {
	t.raw, t.ready, t.pasting = nil, nil, false
	select {
	case <-t.keys.reading:
		t.keys.reading = nil
	default:
	}
}
