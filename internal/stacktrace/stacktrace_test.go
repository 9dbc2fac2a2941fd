package stacktrace

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

type trace struct{ name, message, text string }

// readTraces reads the outputs of crashed programs. Each begins with two lines: its name and the
// message that it holds.
func readTraces(t *testing.T) (traces []trace) {
	t.Helper()
	data, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(data), "=== "), "\n=== ") {
		name, rest, _ := strings.Cut(part, "\nmessage: ")
		message, text, ok := strings.Cut(rest, "\n")
		if !ok {
			t.Fatalf("no message in %q", part)
		}
		traces = append(traces, trace{name, message, text})
	}
	return traces
}

func TestMessage(t *testing.T) {
	t.Parallel()
	traces := readTraces(t)
	if len(traces) < 30 {
		t.Fatalf("only %d traces", len(traces))
	}
	for _, trace := range traces {
		t.Run(trace.name, func(t *testing.T) {
			t.Parallel()
			if got := Message(trace.text); got != trace.message {
				t.Errorf("got  %s\nwant %s", got, trace.message)
			}
		})
	}
}

// What remains of a trace is short, and neither a frame nor the runtime's version.
func TestCondense(t *testing.T) {
	t.Parallel()
	noise := regexp.MustCompile(`(?m)^\s+at |^\s+from |^\s*File "|Node\.js v|Bun v|^goroutine|\+0x|\^$`)
	for _, trace := range readTraces(t) {
		if strings.HasPrefix(trace.name, "a log of") {
			continue
		}
		got := Condense(trace.text)
		if noise.MatchString(got) || got == "" || strings.Count(got, "\n") > 6 {
			t.Errorf("%s:\n%s", trace.name, got)
		}
	}
	text := "one\n  two\n\nthree at four (five)"
	if got := Condense(text); got != "one\n  two\nthree at four (five)" {
		t.Errorf("%q", got)
	}
}

// Whatever a server writes, Condense keeps no line twice and ends.
func FuzzCondense(f *testing.F) {
	data, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("^\n^\n")
	f.Add("/x:1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Condense(text); len(got) > len(text)+len("Traceback (most recent call last):")*strings.Count(text, "+ Exception") {
			t.Errorf("%q grew to %q", text, got)
		}
		Message(text)
	})
}
