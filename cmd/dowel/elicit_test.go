package main

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// slyForm is text that hides most of itself from whoever reads it on a terminal.
const slyForm = "ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f"

const slyFormShown = `ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f`

// Nothing of a form that the user answers is hidden.
func TestFormsReveal(t *testing.T) {
	var shown strings.Builder
	q := &questions{out: newScreen(&shown, nil), in: newLines(strings.NewReader("")), origin: "somewhere"}
	q.asks(&client.ElicitRequest{Server: slyForm, ElicitParams: mcp.ElicitParams{Message: slyForm}}, "asks:")
	text := shown.String()
	if revealed(text) != text {
		t.Errorf("something cannot be seen in %q", text)
	}
	if !strings.Contains(text, "rm -rf ~") || !strings.Contains(text, slyFormShown) {
		t.Errorf("something is left out in %s", text)
	}
}
