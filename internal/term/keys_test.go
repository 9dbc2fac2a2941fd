package term

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// chunkReader returns at most n bytes of text at a time.
type chunkReader struct {
	text string
	n    int
}

func (c *chunkReader) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := copy(p, c.text[:min(c.n, len(c.text))])
	c.text = c.text[n:]
	return n, nil
}

// The editor returns the same text for any size of reads. A key that ends a line arrives alone, and
// pasted text contains none.
func TestTyping(t *testing.T) {
	for _, test := range []struct{ typed, want string }{
		{"hello\r", "hello|\r"},
		{"a\rb\n", "a|\r|b|\n"},
		{"\x1b[200~a\r\nb\rc\n\td\x03e\x1b[31m\x1b[201~f\r", "\x1b[200~a␤b␤c␤␉de[31m\x1b[201~f|\r"},
		{"\x1b[200~\x1b[201~\x1b[A\r", "\x1b[200~\x1b[201~\x1b[A|\r"},
		{"x\x04y\r", "x|\x04|y|\r"},
		{"\x1b[200~üß€🙂\r\r\x1b[201~\r", "\x1b[200~üß€🙂␤␤\x1b[201~|\r"},
		{"ü\x1b[20~\r", "ü\x1b[20~|\r"},
	} {
		for _, n := range []int{1, 2, 3, 5, 1000} {
			ty := &editor{keys: &keyboard{from: &chunkReader{test.typed, n}}, ctx: t.Context()}
			var parts []string
			buffer := make([]byte, 256)
			for {
				n, err := ty.Read(buffer)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				text := string(buffer[:n])
				if last := len(parts) - 1; last >= 0 && !strings.ContainsAny(text+parts[last], "\r\n\x04") {
					parts[last] += text
					continue
				}
				parts = append(parts, text)
			}
			if got := strings.Join(parts, "|"); got != test.want {
				t.Errorf("%q by %d: got %q, want %q", test.typed, n, got, test.want)
			}
		}
	}
}

func TestTypingInterrupted(t *testing.T) {
	ty := &editor{keys: &keyboard{from: strings.NewReader("ab\x03c\r")}, ctx: t.Context()}
	var got []string
	buffer := make([]byte, 256)
	for range 4 {
		ty.interrupted = false
		n, err := ty.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		text := string(buffer[:n])
		if ty.interrupted {
			text += "!"
		}
		got = append(got, text)
	}
	if want := []string{"ab", "\r!", "c", "\r"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If a read is abandoned because its context ended, the next read receives its keys.
func TestKeyboardIsShared(t *testing.T) {
	from, to := io.Pipe()
	k := &keyboard{from: from}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := k.readChunk(ctx); !errors.Is(err, stopped) {
		t.Fatal(err)
	}
	go func() { _, _ = to.Write([]byte("later")) }() // it is read below
	if text, err := k.readChunk(t.Context()); string(text) != "later" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// CompleteAgain repeats a Tab of the user, but only while Tab is the last key.
func TestTabAgain(t *testing.T) {
	from, keys := io.Pipe()
	defer keys.Close()
	k := &keyboard{from: from, tabs: make(chan struct{}, 1)}
	e := &editor{keys: k, ctx: t.Context()}
	press := func(key string) {
		go func() { _, _ = io.WriteString(keys, key) }() // read below
	}
	for i, step := range []struct {
		key   string
		again bool
		want  string
	}{{key: "\t", want: "\t"}, {again: true, want: "\t"}, {again: true, want: "\t"}, {key: "x", want: "x"}, {key: "y", again: true, want: "y"}, {key: "\t", want: "\t"}} {
		if step.again {
			k.tabs <- struct{}{}
		}
		if step.key != "" {
			press(step.key)
		}
		buffer := make([]byte, 16)
		if n, err := e.Read(buffer); err != nil || string(buffer[:n]) != step.want {
			t.Errorf("%d: got %q, %v, want %q", i, buffer[:n], err, step.want)
		}
	}
}
