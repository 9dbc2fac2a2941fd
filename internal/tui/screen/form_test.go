package screen

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/internal/tui/form"
)

func approval() *form.Form {
	return &form.Form{
		Title: "Run files.write?", Body: "files.write wants to run: may be destructive\n  │ path: a.txt\n  │ text: hello",
		Actions: []form.Action{{Key: "y", Word: "y", About: "run it once", Skips: true}, {Key: "S", Word: "server", About: "run every tool of files", Skips: true}, {Key: "n", Word: "n", About: "do not run it", Skips: true}},
		Leave:   form.Action{Word: "leave", About: "refuses"},
	}
}

func TestScreenApproval(t *testing.T) {
	d := newDriver(t)
	answered := []string{}
	d.send(Asked{approval(), func(word string) { answered = append(answered, word) }})
	d.press("y")
	d.checkGolden("approval")
	d.checkStyles("approval")
	d.rows(80, 24) // shows the whole call again
	d.press("es and more", "enter")
	if len(answered) > 0 {
		t.Errorf("words that begin with an answer have answered %q", answered)
	}
	d.press("S", "enter")
	if !slices.Equal(answered, []string{"server"}) {
		t.Errorf("answered %q", answered)
	}
}

// A form does not take the keys of a user who is writing.
func TestScreenAskedWhileWriting(t *testing.T) {
	d := newDriver(t)
	answered := ""
	d.press("I write")
	d.send(Asked{approval(), func(word string) { answered = word }})
	d.press(" y", "enter")
	if answered != "" || !slices.Equal(d.told, []string{"submit I write y"}) {
		t.Errorf("answered %q, told %q", answered, d.told)
	}
	d.press("n", "enter")
	if answered != "" {
		t.Errorf("answered %q", answered)
	}
}

func TestScreenForm(t *testing.T) {
	d := newDriver(t)
	answered := ""
	f := &form.Form{
		Title: "tester (a command) asks:", Body: "Who are you?",
		Fields: []form.Field{
			{Label: "Your name (text)", About: "As on your passport"},
			{Label: "agree (yes or no)", Kind: form.OneOf, Choices: []string{"yes", "no"}},
			{Label: "days", Kind: form.SomeOf, Choices: []string{"mon", "tue", "wed"}},
		},
		Actions: []form.Action{{Word: "send", About: "send this to tester"}, {Word: "decline", About: "decline", Skips: true}},
		Leave:   form.Action{Word: "leave", About: "leaves it unanswered"},
	}
	f.Fields[0].Check = func() error {
		if f.Fields[0].Value == "" {
			return fmt.Errorf("an answer is needed")
		}
		return nil
	}
	d.send(Asked{f, func(word string) { answered = word }})
	d.press("enter", "y", "enter", "space", "w", "enter", "enter")
	d.checkGolden("form")
	d.checkStyles("form")
	if answered != "" {
		t.Error("an invalid form was sent")
	}
	d.press("Ada", "enter", "enter", "enter", "enter")
	if answered != "send" || f.Fields[0].Value != "Ada" || !f.Fields[1].Chosen[0] || !f.Fields[2].Chosen[0] || f.Fields[2].Chosen[1] || !f.Fields[2].Chosen[2] {
		t.Errorf("%q, %+v", answered, f.Fields)
	}
}

func TestScreenFormIsWithdrawn(t *testing.T) {
	d := newDriver(t)
	first, second := approval(), approval()
	second.Title = "Run it again?"
	answered := ""
	d.send(Asked{first, func(string) { answered = "first" }}, Asked{second, func(string) { answered = "second" }}, Withdrawn{first})
	if !d.shows("Run it again?") {
		t.Error("the second form is not shown")
	}
	d.press("esc")
	if answered != "second" || d.shows("Run it again?") {
		t.Errorf("answered %q", answered)
	}
}
