package term

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

// sly is text that a terminal would show only in part.
const sly = "ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f"

const slyRevealed = `ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f`

func TestRevealed(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"plain\n\ttext, ünï 日": "plain\n\ttext, ünï 日",
		sly:                    slyRevealed,
		"\xff\xc3":             `\xff\xc3`,
		"\u2028\u3164\u034f":   `\u2028\u3164\u034f`,
		"\ufffd":               "\ufffd",
	} {
		if got := Reveal(text); got != want {
			t.Errorf("%q: got %s\nwant %s", text, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain\n\ttext ü 🙂", "plain\n\ttext ü 🙂"},
		{"a\x1b[31mb\x1b[0mc", "abc"},
		{"a\x1b]0;title\x07b", "ab"},
		{"a\x1b]8;;http://x\x1b\\b", "ab"},
		{"a\rb\x00c\x7f\u009bd", "abcd"},
		{"user\u202egpj.exe", "usergpj.exe"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{"in\u200bvis\u2060ib\ufeffle\U000e0041\U000e007f", "invisible"},
		{"👩\u200d🚀 ❤\ufe0f می\u200cخواهم", "👩\u200d🚀 ❤\ufe0f می\u200cخواهم"},
	} {
		if got := Printable(test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := Wrap([]string{"aaa", "bb", "ccccccccc", "d"}, 6)
	if want := []string{"aaa bb", "ccccccccc", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTextWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "大": 2, "サーバー": 8, "ｶﾞ": 2, "한국": 4, "🚀": 2, "✓ ok": 4, "●─→…": 4, "\xff": 1, "a\u200bb": 2, "𠀀": 2,
	} {
		if got := TextWidth(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"大きい", 6, "大きい"}, {"大きい", 5, "大き…"}, {"大きい", 4, "大…"}, {"大きい", 2, "…"}, {"ab", 0, "…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"}, {"\xff\xff\xff", 2, "\xff…"},
	} {
		if got := Shorten(tt.text, tt.width); got != tt.want {
			t.Errorf("%q in %d columns is %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// A status is erased line by line. Terminals such as tmux copy a screen that is erased at once to
// their history, so each change of a table as high as the terminal would leave a copy there.
func TestStatusLeavesNoCopies(t *testing.T) {
	t.Parallel()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	s := NewTerminalScreen(&out, file, false)
	s.SetStatusLines("a\nb\n")
	s.SetStatusLines("c\nd\n")
	if _, err := s.Write([]byte("above\n")); err != nil {
		t.Fatal(err)
	}
	const erase = "\r\x1b[K\x1b[A\x1b[K\x1b[A\x1b[K"
	if want := "\r\x1b[Ka\nb\n" + erase + "c\nd\n" + erase + "above\nc\nd\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
