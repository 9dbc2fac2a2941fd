package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var streams = []struct{ name, in, want string }{
	{"nothing", "", `EOF`},
	{"an event", "data: a\n\n", `"" - 0s "a" | EOF`},
	{"CR", "data: a\r\rdata: b\r\r", `"" - 0s "a" | "" - 0s "b" | EOF`},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", `"" - 0s "a" | "" - 0s "b" | EOF`},
	{"mixed ends", "data: a\r\n\rdata: b\n\r\ndata: c\r\n\n", `"" - 0s "a" | "" - 0s "b" | "" - 0s "c" | EOF`},
	{"no space", "data:a\ndata:  b\n\n", `"" - 0s "a\n b" | EOF`},
	{"a mark", "\ufeffdata: a\n\n", `"" - 0s "a" | EOF`},
	{"a mark and an empty line", "\ufeff\ndata: a\n\n", `"" - 0s "a" | EOF`},
	{"a mark before a comment", "\ufeff: c\ndata: a\n\n", `"" - 0s "a" | EOF`},
	{"a mark further down", "data: b\n\n\ufeffdata: a\n\n", `"" - 0s "b" | EOF`},
	{"two marks", "\ufeff\ufeffdata: a\n\n", `EOF`},
	{"all fields", "event: e\nid: 1\nretry: 20\ndata: a\n\n", `"e" "1" 20ms "a" | EOF`},
	{"many lines", "data: a\ndata\ndata:\ndata: b\n\n", `"" - 0s "a\n\n\nb" | EOF`},
	{"empty data", "data\n\ndata:\n\ndata\ndata\n\n", `"" - 0s "" | "" - 0s "" | "" - 0s "\n" | EOF`},
	{"priming", "id: 1\ndata:\n\nid: 2\n\nretry: 5\n\nid: 3\nretry: 0\n\n", `"" "1" 0s "" | "" "2" 0s "" | "" - 5ms "" | "" "3" 1ns "" | EOF`},
	{"no event", "event: e\n\nfoo: bar\n\n: c\n\n\n\ndata: a\n\n", `"" - 0s "a" | EOF`},
	{"nothing is carried over", "event: e\nid: 1\ndata: a\n\ndata: b\n\n", `"e" "1" 0s "a" | "" - 0s "b" | EOF`},
	{"the last one counts", "event: e\nevent: f\nid: 1\nid: 2\nretry: 1\nretry: 2\ndata: a\n\n", `"f" "2" 2ms "a" | EOF`},
	{"message by name", "event: e\nevent: message\ndata: a\n\nevent: messages\ndata: b\n\n", `"" - 0s "a" | "messages" - 0s "b" | EOF`},
	{"ids", "id\ndata: a\n\nid: a\x00b\ndata: b\n\nid: x\nid: \x00\ndata: c\n\n", `"" "" 0s "a" | "" - 0s "b" | "" "x" 0s "c" | EOF`},
	{"retries", "retry: -1\nretry: 1x\nretry: +1\nretry: 1.5\nretry:\nretry: ١\ndata: a\n\nretry: 007\n\nretry: 99999999999999999999999\n\n", `"" - 0s "a" | "" - 7ms "" | "" - 2562047h47m16.854s "" | EOF`},
	{"names are exact", "Data: a\n data: a\ndata : a\ndat: a\ndatax: a\neventdata: a\ndata: b\n\n", `"" - 0s "b" | EOF`},
	{"comments", ": c\n:\n:data: x\ndata: a\n: c\ndata: b\n\n: c\n", `"" - 0s "a\nb" | EOF`},
	{"colons", "data: a:b: c\ndata::\n\n", `"" - 0s "a:b: c\n:" | EOF`},
	{"no UTF-8", "data: \xff\x00\xe2\x82\n\n", `"" - 0s "\xff\x00\xe2\x82" | EOF`},
	{"cut in a name", "data: a\n\nda", `"" - 0s "a" | unexpected EOF`},
	{"cut in a value", "data: a\n\ndata: b", `"" - 0s "a" | unexpected EOF`},
	{"cut behind a line", "data: a\n", `unexpected EOF`},
	{"cut between CR and LF", "data: a\r", `unexpected EOF`},
	{"cut behind an id", "id: 1\n", `unexpected EOF`},
	{"cut in a rune", "data: \xe2\x82", `unexpected EOF`},
	{"cut in a comment", "data: a\n\n: keep", `"" - 0s "a" | EOF`},
	{"cut behind a comment", "data: a\n\n: keep\n", `"" - 0s "a" | EOF`},
	{"cut in the last line end", "data: a\r\n\r", `"" - 0s "a" | EOF`},
}

func TestReader(t *testing.T) {
	for _, tt := range streams {
		if got := strings.Join(reference(tt.in, 100), " | "); got != tt.want {
			t.Errorf("%s: the reference has %s, want %s", tt.name, got, tt.want)
		}
		for _, n := range []int{1, 2, 3, 5, 4096} {
			if got := strings.Join(read(&chunks{tt.in, n}, 100), " | "); got != tt.want {
				t.Errorf("%s, by %d: %s\nwant %s", tt.name, n, got, tt.want)
			}
		}
		if got := strings.Join(read(iotest.DataErrReader(strings.NewReader(tt.in)), 100), " | "); got != tt.want {
			t.Errorf("%s, with the end: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// Events around the sizes of the window and the limit, in pieces of all sizes.
func TestReaderLong(t *testing.T) {
	const limit = 40_000
	for _, size := range []int{windowSize/2 - 7, windowSize - 7, windowSize - 6, windowSize, windowSize + 1, 3 * windowSize, limit - 1, limit, limit + 1, 3 * limit} {
		long := strings.Repeat("0123456789", size/10+1)[:size]
		in := "data: a\n\ndata: " + long + "\n\ndata: b\r\n\r\ndata: " + long[:size/2] + "\ndata:" + long[:size-size/2-1] + "\ndata: \r\ndata\n\n" +
			"data: c\n\n:" + long + "\n" + long + ": x\n" + long + "\ndata: d\n\nid: " + long + "\nid: 1\ndata: e\n\nevent: " + long + "\nretry: " + long + "\n\ndata: f\n\n"
		want := reference(in, limit)
		for _, n := range []int{1, 7, windowSize - 1, windowSize, 9 * windowSize, 1 << 20} {
			if n == 1 && size > 3*windowSize {
				continue
			}
			if got := read(&chunks{in, n}, limit); !slices.Equal(got, want) {
				t.Errorf("%d bytes, by %d: %.300s\nwant %.300s", size, n, got, want)
			}
		}
	}
}

func TestReaderTooLarge(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	in := "id: 7\nevent: e\ndata: {head" + long + "\ndata: " + long + "tail}\n\ndata: next\n\nid: " + long + "\n\ndata: 12345678901\n\n"
	r := NewReader(&chunks{in, 100}, 10)
	_, err := r.Next()
	var lost *TooLargeError
	if !errors.Is(err, ErrTooLarge) || !errors.As(err, &lost) {
		t.Fatal(err)
	}
	if lost.ID != "7" || lost.Name != "e" || lost.Size != 20_011 || len(lost.DataHead) != sampleSize || len(lost.DataTail) != sampleSize ||
		!bytes.HasPrefix(lost.DataHead, []byte("{headxxx")) || !bytes.HasSuffix(lost.DataTail, []byte("xxtail}")) {
		t.Errorf("%+v", lost)
	}
	if e, err := r.Next(); err != nil || string(e.Data) != "next" {
		t.Error(e, err)
	}
	if _, err = r.Next(); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "an id") {
		t.Error(err)
	}
	if _, err = r.Next(); !errors.As(err, &lost) || string(lost.DataHead) != "12345678901" || string(lost.DataTail) != "12345678901" {
		t.Error(err, lost)
	}
	if _, err = r.Next(); err != io.EOF {
		t.Error(err)
	}
}

// Skipped data must take no memory.
func TestReaderMemory(t *testing.T) {
	for _, tt := range []struct{ name, line, end string }{
		{"a line", "data: ", "\n\n"}, {"a comment", ": ", "\n"}, {"an unknown field", "x: ", "\n"}, {"a name", "x", "\n"}, {"an id", "id: ", "\n\n"},
	} {
		r := NewReader(io.MultiReader(strings.NewReader(tt.line), io.LimitReader(xs{}, 64<<20), strings.NewReader(tt.end+"data: a\n\n")), 1000)
		var most int
		r.src = watch{r.src, func() { most = max(most, cap(r.block.Data)+cap(r.block.value)+cap(r.buf)) }}
		e, err := r.Next()
		if errors.Is(err, ErrTooLarge) {
			e, err = r.Next()
		}
		if err != nil || string(e.Data) != "a" {
			t.Errorf("%s: %v %v", tt.name, e, err)
		}
		if most > 4*windowSize {
			t.Errorf("%s: %d bytes were held", tt.name, most)
		}
	}
}

type xs struct{}

func (xs) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{'x'}, len(p))), nil }

type watch struct {
	io.Reader
	look func()
}

func (w watch) Read(p []byte) (int, error) { w.look(); return w.Reader.Read(p) }

// An event must be returned when it has ended, without waiting for the next byte.
func TestReaderDoesNotWait(t *testing.T) {
	for _, in := range []string{"data: a\r\r", "data: a\n\n", "data: a\r\n\r", "data: a\r\n\r\n", "data: a\n\r", "\ufeff\rdata: a\n\n"} {
		for _, n := range []int{1, 2, 100} {
			stuck := func() { panic(fmt.Sprintf("%q: another byte was waited for", in)) }
			r := NewReader(io.MultiReader(&chunks{in, n}, watch{nil, stuck}), 0)
			if e, err := r.Next(); err != nil || string(e.Data) != "a" {
				t.Errorf("%q: %v %v", in, e, err)
			}
		}
	}
}

func TestReaderFails(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 0)
	if e, err := r.Next(); err != nil || string(e.Data) != "a" {
		t.Error(e, err)
	}
	for range 2 {
		if _, err := r.Next(); err != broken {
			t.Error(err)
		}
	}
	if _, err := NewReader(watch{&chunks{"data: a", 0}, func() {}}, 0).Next(); err != io.ErrNoProgress {
		t.Error(err)
	}
}

// The time must be linear in the size of the input, whatever its lines and pieces.
func TestReaderIsLinear(t *testing.T) {
	for _, line := range []string{"\n", "\r", ":\n", "data\n", "data\r", "x\r", "data: " + strings.Repeat("x", 1<<20)} {
		in := &chunks{strings.Repeat(line, max(1, 1<<20/len(line))) + "\n\n", 64}
		began := time.Now()
		for r := NewReader(in, 0); ; {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		if took := time.Since(began); took > time.Minute { // minutes, if it grew with the square; a busy machine takes two seconds
			t.Errorf("1 MiB of %.10q takes %v", line, took)
		}
	}
}

func TestReaderAllocations(t *testing.T) {
	event := Encode(Event{Data: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)})
	r := NewReader(&endless{event: event}, 0)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for an event, want 1", n)
	}
}

// endless repeats an event.
type endless struct {
	event []byte
	pos   int
}

func (r *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.event[r.pos:])
		n += m
		r.pos = (r.pos + m) % len(r.event)
	}
	return n, nil
}
