package elicit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// slyForm is text that a terminal would show only in part.
const slyForm = "ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f"

const slyFormShown = `ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f`

// A form is shown with its hidden characters revealed.
func TestFormsReveal(t *testing.T) {
	var shown strings.Builder
	q := &Asker{Out: term.NewScreen(&shown, nil), In: term.NewLines(strings.NewReader("")), Origin: "somewhere"}
	q.printRequest(&client.ElicitRequest{Server: slyForm, ElicitParams: mcp.ElicitParams{Message: slyForm}}, "asks:")
	text := shown.String()
	if term.Reveal(text) != text {
		t.Errorf("something cannot be seen in %q", text)
	}
	if !strings.Contains(text, "rm -rf ~") || !strings.Contains(text, slyFormShown) {
		t.Errorf("something is left out in %s", text)
	}
}

// An answer for one server does not apply to others, and takes precedence over one for all servers.
func TestAnswersFor(t *testing.T) {
	given := []toolargs.Argument{{Key: "name", Value: "Bob"}, {Key: "a.name", Value: "Ada"}, {Key: "a.b.name", Value: "Eve"}, {Key: "day", Value: "1"}, {Key: "a.", Value: "x"}, {Key: ".name", Value: "y"}}
	for server, want := range map[string]string{
		"":    "[{name Bob} {a.name Ada} {a.b.name Eve} {day 1} {a. x} {.name y}]",
		"a":   "[{name Ada} {b.name Eve} {a.name Ada} {a.b.name Eve} {day 1} {a. x} {.name y}]",
		"a.b": "[{name Eve} {a.name Ada} {a.b.name Eve} {day 1} {a. x} {.name y}]",
	} {
		if got := fmt.Sprint(AnswersFor(server, given)); got != want {
			t.Errorf("%s: got %s", server, got)
		}
	}
}
