//go:build unix

package process

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

func TestStderrFloodBlocksNobody(t *testing.T) {
	polltest.NoLeaks(t)
	child := start(t, self("flood"))
	if line, err := bufio.NewReader(child).ReadString('\n'); line != "done\n" || err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	child.Close()
	if got := child.stderr.snapshot(); len(got) != defaultRing || bytes.Count(got, []byte("\n")) != defaultRing/1024 {
		t.Errorf("kept %d bytes: %q", len(got), got)
	}
	if got := child.StderrTail(1); got != strings.Repeat("x", 1023) {
		t.Errorf("tail %q", got)
	}
}

func TestStuckStderrWriterBlocksNobody(t *testing.T) {
	polltest.NoLeaks(t)
	stuck, release := io.Pipe()
	defer release.Close()
	c := self("flood")
	c.Stderr = writerFunc(func(p []byte) (int, error) { stuck.Read(make([]byte, 1)); return len(p), nil })
	child := start(t, c)
	polltest.Within(t, func() { bufio.NewReader(child).ReadString('\n') })
	begun := time.Now()
	polltest.Within(t, func() { child.Close() })
	if took := time.Since(begun); took < flushBound {
		t.Errorf("Close gave up on the writer after %v, want %v", took, flushBound)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestStderrIsCopiedInFull(t *testing.T) {
	var copied bytes.Buffer
	c := sh(`echo one >&2; echo two >&2`)
	c.Stderr = &copied
	child := start(t, c)
	child.Wait()
	child.Close() // the copying has ended with it
	if copied.String() != "one\ntwo\n" || string(child.stderr.snapshot()) != "one\ntwo\n" {
		t.Errorf("copied %q, kept %q", copied.String(), child.stderr.snapshot())
	}
}

func TestStderrRing(t *testing.T) {
	for _, tt := range []struct {
		size   int
		writes []string
		want   string
	}{
		{5, []string{"abc"}, "abc"},
		{5, []string{"abc", "de"}, "abcde"},
		{5, []string{"abc", "defg"}, "cdefg"},
		{5, []string{"abcdefghij"}, "fghij"},
		{5, []string{"abcde", "f", "gh", "ijklmn", "o"}, "klmno"},
		{0, []string{"abc"}, ""},
	} {
		l := newStderrLog(tt.size, nil)
		for _, w := range tt.writes {
			l.Write([]byte(w))
		}
		if got := string(l.snapshot()); got != tt.want {
			t.Errorf("size %d after %q: %q, want %q", tt.size, tt.writes, got, tt.want)
		}
	}
}

func TestStderrTail(t *testing.T) {
	l := newStderrLog(defaultRing, nil)
	l.Write([]byte("one\ntwo\n\nthree\r\n"))
	for lines, want := range []string{"", "three", "\nthree", "two\n\nthree", "one\ntwo\n\nthree", "one\ntwo\n\nthree"} {
		if got := lastLines(string(l.snapshot()), lines); got != want {
			t.Errorf("tail(%d) = %q, want %q", lines, got, want)
		}
	}
}

func TestSlowStderrCopyTellsOfGaps(t *testing.T) {
	var copied bytes.Buffer
	step := make(chan struct{})
	l := newStderrLog(defaultRing, writerFunc(func(p []byte) (int, error) { <-step; return copied.Write(p) }))
	l.Write([]byte("first"))
	step <- struct{}{}
	l.Write([]byte("held"))
	polltest.Until(t, "a writer that holds the second line", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue) == 0
	})
	l.Write(make([]byte, maxBacklog))
	l.Write([]byte("lost"))
	close(step)
	l.awaitCopy()
	want := slices.Concat([]byte("firstheld"), make([]byte, maxBacklog), []byte("\n[4 bytes of stderr left out: they came faster than they could be copied]\n"))
	if !bytes.Equal(copied.Bytes(), want) {
		t.Errorf("copied %d bytes, want %d: …%q", copied.Len(), len(want), copied.Bytes()[max(0, copied.Len()-100):])
	}
}
