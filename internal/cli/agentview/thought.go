package agentview

import (
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/term"
)

// thought collects the model's thinking since its last answer or call.
type thought struct {
	whole   strings.Builder
	tail    []byte    // the end of whole, for the status line
	drawnAt time.Time // when a new piece last updated the status line
}

// A long thought arrives in many small pieces. Each update of the status line looks at a tail of
// bounded size, and pieces cause at most one update in an interval, so the cost stays linear.
const (
	thoughtTailSize = 4 << 10 // bytes; the tail holds up to twice as many
	thoughtInterval = 100 * time.Millisecond
)

// appendText appends a piece and trims the tail.
func (t *thought) appendText(text string) {
	t.whole.WriteString(text)
	t.tail = append(t.tail, text[max(len(text)-2*thoughtTailSize, 0):]...)
	if n := len(t.tail); n > 2*thoughtTailSize {
		t.tail = append(t.tail[:0], t.tail[n-thoughtTailSize:]...)
	}
}

// thinkingLine returns the status line while the model replies: the time, and the end of the
// thought as far as width allows.
func (r *Renderer) thinkingLine(width int) string {
	text := "thinking"
	if took := r.now().Sub(r.stateStart); took >= time.Second {
		text += " " + display.Duration(took.Truncate(time.Second))
	}
	thought := []rune(term.Line(strings.ToValidUTF8(string(r.thought.tail), ""))) // the tail may begin in the middle of a character
	room := width - len([]rune(text)) - len(": …")
	if len(thought) == 0 || room < 10 {
		return text + " …"
	}
	if len(thought) > room {
		return text + ": …" + string(thought[len(thought)-room:])
	}
	return text + ": " + string(thought)
}

// finishThought writes the beginning of the thought, or all of it if Verbose is set, and forgets
// it.
func (r *Renderer) finishThought() {
	thought := strings.TrimSpace(r.thought.whole.String())
	r.thought.whole.Reset()
	r.thought.tail = r.thought.tail[:0]
	if thought == "" || !r.Side.IsTerminal() && !r.Verbose && !r.Excerpts {
		return
	}
	r.writeRemark("%s", r.Side.Dim("thought: "+r.Excerpt(thought, 2)))
}

// Excerpt returns the beginning of a text that fits in the given number of screen lines, or the
// whole text if Verbose is set. Control characters are made visible or removed.
func (r *Renderer) Excerpt(text string, lines int) string {
	if r.Verbose {
		return strings.ReplaceAll(strings.TrimSpace(r.Side.Clean(text)), "\n", "\n  ")
	}
	const indent = len("thought: ")
	return term.Shorten(term.Line(text), max(min(r.Side.Columns(), 200)*lines-indent-1, 40))
}
