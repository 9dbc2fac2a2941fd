package screen

import (
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// A pasted path of an image attaches it, and stands apart from the words before it. Other pasted
// text is text.
func TestScreenPastesImage(t *testing.T) {
	d := newDriver(t)
	d.press("look")
	d.send(tea.PasteMsg{Content: "a.png"}, tea.PasteMsg{Content: "at b.c"}, tea.PasteMsg{Content: " x\ny"})
	if text := d.model.composer.Text(); text != "look @a.png at b.c x\ny" {
		t.Errorf("the input is %q", text)
	}
}

// What the user types behind a pasted path comes behind it, however long the host looks at the
// file.
func TestScreenHoldsInput(t *testing.T) {
	d := newDriver(t)
	_, command := d.model.Update(tea.PasteMsg{Content: "a.png"})
	d.press("look", "enter", "next")
	d.send(tea.PasteMsg{Content: "b.png"})
	d.press("end")
	if text := d.model.composer.Text(); text != "" || len(d.told) > 0 {
		t.Errorf("the input is %q, told %q", text, d.told)
	}
	_, command = d.model.Update(command())
	for command != nil {
		var next tea.Cmd
		switch result := command().(type) {
		case tea.BatchMsg:
			for _, c := range result {
				if c != nil {
					_, next = d.model.Update(c())
				}
			}
		case nil:
		default:
			_, next = d.model.Update(result)
		}
		command = next
	}
	if text := d.model.composer.Text(); !slices.Equal(d.told, []string{"submit @a.png look"}) || text != "next @b.png end" {
		t.Errorf("told %q, and the input is %q", d.told, text)
	}
}
