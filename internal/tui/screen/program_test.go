package screen

import (
	"bytes"
	"regexp"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

var colour = regexp.MustCompile(`\x1b\[[0-9;]*(3[0-9]|9[0-7])[0-9;]*m`)

// NO_COLOR removes the colours, and nothing else.
func TestNoColor(t *testing.T) {
	for name, tt := range map[string]struct {
		variable string
		colours  bool
	}{"colours": {"", true}, "none": {"NO_COLOR=1", false}} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := tea.NewProgram(New(Host{}, true, start), tea.WithInput(nil), tea.WithOutput(&out), tea.WithWindowSize(80, 24), tea.WithoutSignalHandler(),
				tea.WithEnvironment([]string{"TERM=xterm-256color", "TTY_FORCE=1", tt.variable}))
			go p.Send(Batch{Noticed{transcript.Trouble, "trouble"}, Said{"```go\nreturn 1 // why\n```\n"}, Closed{}})
			if _, err := p.Run(); err != nil {
				t.Fatal(err)
			}
			if got := colour.MatchString(out.String()); got != tt.colours || !bytes.Contains(out.Bytes(), []byte("trouble")) || !bytes.Contains(out.Bytes(), []byte("return")) {
				t.Errorf("the output is %q", out.String())
			}
		})
	}
}

// The two backgrounds have colours of their own.
func TestBackgrounds(t *testing.T) {
	d := newDriver(t)
	d.send(Noticed{transcript.Trouble, "trouble"})
	dark := d.model.View().Content
	d.send(tea.BackgroundColorMsg{Color: white{}})
	if light := d.model.View().Content; light == dark || !colour.MatchString(light) {
		t.Errorf("light %q, dark %q", light, dark)
	}
}

// white is the background of a light terminal.
type white struct{}

// RGBA implements [image/color.Color].
func (white) RGBA() (r, g, b, a uint32) { return 0xffff, 0xffff, 0xffff, 0xffff }
