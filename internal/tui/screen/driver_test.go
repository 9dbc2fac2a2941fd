package screen

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"
)

var update = flag.Bool("update", false, "write testdata anew")

// start is the time at which every test begins.
var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// driver presses keys on a screen, and notes what the host is told.
type driver struct {
	t     *testing.T
	model *Model
	told  []string
	known []string // completions
}

func newDriver(t *testing.T) *driver {
	d := &driver{t: t}
	tell := func(word string) func() { return func() { d.told = append(d.told, word) } }
	d.model = New(Host{
		Submit:     func(text string) { d.told = append(d.told, "submit "+text) },
		FollowWire: tell("wire"), Stop: tell("stop"), Interrupt: tell("interrupt"), End: tell("end"), EditLast: tell("edit"),
		OpenEditor: func(text string) (*exec.Cmd, func(error) (string, error), error) {
			return nil, nil, fmt.Errorf("no editor for %q", text)
		},
		MentionImage: func(pasted string) (string, bool) {
			return "@" + pasted, strings.HasSuffix(pasted, ".png")
		},
		Complete: func(draft string, at int) (string, int, []string) {
			var found []string
			for _, word := range d.known {
				if strings.HasPrefix(word, draft[:at]) {
					found = append(found, word)
				}
			}
			if len(found) == 1 {
				return found[0] + " ", len(found[0]) + 1, found
			}
			return draft, at, found
		},
	}, true, start)
	return d
}

// send hands messages to the screen, and runs the commands that come back.
func (d *driver) send(messages ...tea.Msg) {
	for _, msg := range messages {
		_, command := d.model.Update(msg)
		if command != nil {
			switch result := command().(type) {
			case completed, pasted:
				d.send(result)
			}
		}
	}
}

// keys are the keys that a name cannot be typed for.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "alt+esc": {Code: tea.KeyEscape, Mod: tea.ModAlt}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"f12": {Code: tea.KeyF12}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace}, "space": {Code: tea.KeySpace, Text: " "},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
	"ctrl+g": {Code: 'g', Mod: tea.ModCtrl}, "ctrl+j": {Code: 'j', Mod: tea.ModCtrl}, "ctrl+home": {Code: tea.KeyHome, Mod: tea.ModCtrl},
}

// press presses keys by their names, and types all other words.
func (d *driver) press(words ...string) {
	for _, word := range words {
		if key, ok := keys[word]; ok {
			d.send(key)
			continue
		}
		for _, r := range word {
			d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// rows returns what a terminal of the given size shows.
func (d *driver) rows(width, height int) []string {
	d.t.Helper()
	d.send(tea.WindowSizeMsg{Width: width, Height: height})
	view := d.model.View()
	terminal := vt.NewEmulator(width, height)
	if _, err := terminal.WriteString(strings.ReplaceAll(view.Content, "\n", "\r\n")); err != nil {
		d.t.Fatal(err)
	}
	rows := strings.Split(terminal.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " \r")
	}
	if c := view.Cursor; c != nil && (c.X < 0 || c.Y < 0 || c.X >= width || c.Y >= height) {
		d.t.Errorf("the cursor is at %d, %d of %dx%d", c.X, c.Y, width, height)
	}
	return rows
}

// sizes are the terminals of the golden screens.
var sizes = [][2]int{{80, 24}, {120, 40}, {40, 12}}

// checkGolden compares the text of the screen with testdata at each size.
func (d *driver) checkGolden(name string) {
	d.t.Helper()
	for _, size := range sizes {
		got := strings.Join(d.rows(size[0], size[1]), "\n") + "\n"
		path := filepath.Join("testdata", fmt.Sprintf("%s-%dx%d.txt", name, size[0], size[1]))
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				d.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				d.t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			d.t.Fatal(err)
		}
		if got != string(want) {
			d.t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
		}
	}
}

// shows reports whether the screen shows a text.
func (d *driver) shows(text string) bool {
	return strings.Contains(strings.Join(d.rows(80, 24), "\n"), text)
}

// stripStyles removes SGR sequences.
func stripStyles(text string) string {
	for {
		i := strings.Index(text, "\x1b[")
		if i < 0 {
			return text
		}
		end := i + 2
		for end < len(text) && strings.IndexByte("0123456789;:", text[end]) >= 0 {
			end++
		}
		if end == len(text) || text[end] != 'm' {
			return text
		}
		text = text[:i] + text[end+1:]
	}
}
