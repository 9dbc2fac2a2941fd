package shell

import (
	"fmt"
	"strings"
	"testing"
)

// pieces splits a stream that comes in pieces of this size, and writes what is found between
// brackets.
func pieces(stream string, size int) string {
	var got strings.Builder
	s := newSplitter("123")
	for rest := stream; rest != ""; {
		n := min(size, len(rest))
		s.splitMarks([]byte(rest[:n]), func(p []byte) { got.Write(p) }, func(m mark) { fmt.Fprintf(&got, "[%d %t %d %s]", m.number, m.begin, m.status, m.folder) })
		rest = rest[n:]
	}
	got.Write(s.held)
	return got.String()
}

func TestSplit(t *testing.T) {
	for _, c := range []struct{ stream, want string }{
		{"", ""},
		{"text", "text"},
		{"\x1e123:1:b\x1f", "[1 true 0 ]"},
		{"a\x1e123:1:b\x1fb\x1e123:1:0:/a:b\nc\x1fc", "a[1 true 0 ]b[1 false 0 /a:b\nc]c"},
		{"\x1e123:7:255:\x1f\x1e123:8:b\x1f", "[7 false 255 ][8 true 0 ]"},
		{"\x1e124:1:b\x1f", "\x1e124:1:b\x1f"},
		{"\x1e\x1e123:1:b\x1f\x1e", "\x1e[1 true 0 ]\x1e"},
		{"\x1e12", "\x1e12"},
		{"\x1e123:", "\x1e123:"},
		{"\x1e123:x:b\x1f", "\x1e123:x:b\x1f"},
		{"\x1e123:1:\x1f", "\x1e123:1:\x1f"},
		{"\x1e123:1\x1f", "\x1e123:1\x1f"},
		{"\x1e12\x1e123:1:b\x1f", "\x1e12[1 true 0 ]"},
		{"\x1e123:1:" + strings.Repeat("x", maxMark), "\x1e123:1:" + strings.Repeat("x", maxMark)},
	} {
		for size := 1; size <= len(c.stream)+1 && size < 40; size += 1 + len(c.stream)/1000 {
			if got := pieces(c.stream, size); got != c.want {
				t.Errorf("%.100q in pieces of %d: got %.100q, want %.100q", c.stream, size, got, c.want)
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("a\x1e123:1:b\x1fb\x1e123:1:0:/a\x1fc", 3)
	f.Add("\x1e\x1e12\x1e123:", 1)
	f.Fuzz(func(t *testing.T, stream string, size int) {
		size = min(max(size, 1), 1<<16)
		if got, want := pieces(stream, size), pieces(stream, len(stream)+1); got != want {
			t.Errorf("in pieces of %d: got %q, want %q", size, got, want)
		}
		if got := pieces(stream, size); !strings.Contains(stream, "\x1e123:") && got != stream {
			t.Errorf("got %q", got)
		}
	})
}

func TestTokensDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := newToken()
		if len(token) != 38 || strings.Trim(token, "0123456789") != "" || seen[token] {
			t.Fatalf("got %q", token)
		}
		seen[token] = true
	}
}
