package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Framed is a message between dowel and a server, in the current call.
type Framed struct {
	Call  string // of the model, such as "files.read"
	Frame Frame
	// IsFirst begins a call, so the frames before it are no longer shown.
	IsFirst bool
}

// Frame is a message as the wire pane shows it. Text may be foreign.
type Frame struct {
	Time   time.Time
	IsSent bool // by dowel
	Text   string
}

// WireFailed reports why there are no frames.
type WireFailed struct{ Text string }

// wirePane shows the frames of the current call. The zero value is closed.
type wirePane struct {
	isOpen  bool
	call    string
	frames  []Frame
	skipped int // frames that are no longer kept
	trouble string
}

// Bounds of the wire pane.
const (
	maxWireFrames = 200
	maxFrameLines = 3
	maxFrameBytes = 2 << 10
)

func (p *wirePane) addFrame(f Framed) {
	if f.IsFirst || f.Call != p.call {
		p.call, p.frames, p.skipped = f.Call, nil, 0
	}
	f.Frame.Text = f.Frame.Text[:min(len(f.Frame.Text), maxFrameBytes)]
	p.frames, p.trouble = append(p.frames, f.Frame), ""
	if extra := len(p.frames) - maxWireFrames; extra > 0 {
		p.frames, p.skipped = append(p.frames[:0:0], p.frames[extra:]...), p.skipped+extra
	}
}

// lines returns the pane in at most height lines: a heading, and the newest frames.
func (p *wirePane) lines(width, height int, t *theme.Theme) []string {
	head := "wire · no call yet"
	switch {
	case p.trouble != "":
		head = "wire · " + p.trouble
	case p.call != "":
		head = fmt.Sprintf("wire · %s · frame %d", p.call, p.skipped+len(p.frames))
	}
	head = t.Heading.Render(theme.Cut(strings.Join(strings.Fields(theme.Clean(head)), " ")+" · F12 closes", width))
	var newest []string
	for i := len(p.frames) - 1; i >= 0 && len(newest) < height-1; i-- {
		newest = append(frameLines(p.frames[i], width, t), newest...)
	}
	return append([]string{head}, newest[max(len(newest)-max(height-1, 0), 0):]...)
}

// frameLines returns the first lines of a frame.
func frameLines(f Frame, width int, t *theme.Theme) (lines []string) {
	arrow, style := "← ", t.Good
	if f.IsSent {
		arrow, style = "→ ", t.Accent
	}
	text := strings.Join(strings.Fields(theme.Clean(strings.ToValidUTF8(f.Text, "\uFFFD"))), " ")
	for i, part := range theme.Break(f.Time.Format("15:04:05.000 ")+text, width-2) {
		if i == maxFrameLines {
			lines[i-1] = theme.Cut(lines[i-1]+"…", width)
			break
		}
		lines = append(lines, style.Render(arrow)+t.Dim.Render(part))
		arrow = "  "
	}
	return lines
}
