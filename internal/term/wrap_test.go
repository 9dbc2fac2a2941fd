package term

import (
	"io"
	"strings"
	"testing"
)

// Lines break between words, and commands, addresses and flags with their values stay whole.
func TestWrapLine(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"dowel: short", "dowel: short"},
		{"dowel: one two three four five six seven eight", "dowel: one two three four five six seven\n  eight"},
		{"  indented: one two three four five six seven", "  indented: one two three four five six\n  seven"},
		{"    → advice that has more words than one line", "    → advice that has more words than\n      one line"},
		{"name     a value of a table that is too long for it", "name     a value of a table that is too\n         long for it"},
		{"    Ollama     ollama pull   dowel run --model qwen3 --url http://a", "    Ollama     ollama pull\n        dowel run --model qwen3 --url http://a"},
		{"see this page: https://example.com/a/page/with/a/long/address, please", "see this page:\n  https://example.com/a/page/with/a/long/address,\n  please"},
		{"a text that names this: dowel servers restart a, and more", "a text that names this:\n  dowel servers restart a, and more"},
		{"start a dowel with the commands dowel up --http 0 and more", "start a dowel with the commands\n  dowel up --http 0 and more"},
		{"\x1b[31mdowel:\x1b[0m one two three four five six seven", "\x1b[31mdowel:\x1b[0m one two three four five six seven"},
	} {
		if got := WrapLine(tt.line, 40, 2); got != tt.want {
			t.Errorf("WrapLine(%q) =\n%s\nwant\n%s", tt.line, got, tt.want)
		}
	}
}

// Text that goes to no terminal keeps its lines.
func TestWrappedWithoutTerminal(t *testing.T) {
	long := strings.Repeat("word ", 100)
	if got := NewScreen(io.Discard, func() {}).Wrapped(long); got != long {
		t.Errorf("got %q", got)
	}
}
