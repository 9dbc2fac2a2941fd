package term

import (
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
