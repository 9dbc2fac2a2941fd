package main

import (
	"testing"
)

// sly is text that hides most of itself from whoever reads it on a terminal.
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
		if got := revealed(text); got != want {
			t.Errorf("%q: got %s\nwant %s", text, got, want)
		}
	}
}
