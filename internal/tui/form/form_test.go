package form

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

func typed(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }

var enter = tea.KeyPressMsg{Code: tea.KeyEnter}

// The end of a text must have been on the screen before the user can confirm it.
func TestLongBodyIsReadFirst(t *testing.T) {
	var body []string
	for i := range 40 {
		body = append(body, fmt.Sprint("line ", i))
	}
	f := &Form{Title: "Run it?", Body: strings.Join(body, "\n"), Actions: []Action{{Key: "y", Word: "y", About: "run it", Skips: true}}, Leave: Action{Word: "leave"}}
	f.Start()
	shown := ""
	draw := func() {
		lines, _, _ := f.Lines(40, 15, theme.New(true))
		if len(lines) > 15 {
			t.Errorf("%d lines", len(lines))
		}
		shown += ansi.Strip(strings.Join(lines, "\n"))
	}
	draw()
	f.Press(typed('y'))
	for range 10 {
		if result := f.Press(enter); result != nil {
			break
		}
		draw()
	}
	for _, line := range body {
		if !strings.Contains(shown, line) {
			t.Errorf("%s was not shown", line)
		}
	}
}

func TestQuickText(t *testing.T) {
	f := &Form{Fields: []Field{{Label: "Why not?", Value: "ab"}}, IsQuick: true, Actions: []Action{{Word: "send"}}, Leave: Action{Word: "leave"}}
	f.Start()
	for _, key := range []tea.KeyPressMsg{{Code: tea.KeyLeft}, {Code: tea.KeyBackspace}, typed('x'), {Code: tea.KeyEnd}, typed('y')} {
		if f.Press(key) != nil {
			t.Fatal("it has ended")
		}
	}
	f.Paste("z\nz")
	if result := f.Press(enter); result == nil || result.Word != "send" || f.Fields[0].Value != "xbyz z" {
		t.Errorf("%v, %q", result, f.Fields[0].Value)
	}
}

func TestChoices(t *testing.T) {
	f := &Form{
		Fields:  []Field{{Label: "one", Kind: OneOf, Choices: []string{"red", "green"}}, {Label: "some", Kind: SomeOf, Choices: []string{"a", "b", "c"}}},
		Actions: []Action{{Word: "send"}, {Word: "decline", Skips: true}}, Leave: Action{Word: "leave"},
	}
	f.Start()
	down, space := tea.KeyPressMsg{Code: tea.KeyDown}, tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	for _, key := range []tea.KeyPressMsg{down, enter, space, typed('3'), typed('1'), enter, down} {
		f.Press(key)
	}
	result := f.Press(enter)
	if result == nil || result.Word != "decline" || !f.Fields[0].Chosen[1] || f.Fields[1].Chosen[0] || !f.Fields[1].Chosen[2] || !f.Fields[1].IsTouched() {
		t.Errorf("%v, %+v", result, f.Fields)
	}
	if result := f.Press(tea.KeyPressMsg{Code: tea.KeyEscape}); result == nil || result.Word != "leave" {
		t.Errorf("Esc: %v", result)
	}
}
