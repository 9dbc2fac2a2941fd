package agentview

import (
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/term"
)

// thought is what the model thinks.
type thought struct {
	whole   strings.Builder
	tail    []byte    // its end, of which as much is shown as there is room
	drawnAt time.Time // when that was shown last, because of a piece of it
}

// Bounds of what is looked at each time that the end of a thought is shown, and how often that is, because of its pieces.
const (
	thoughtTailSize = 4 << 10
	thoughtInterval = 100 * time.Millisecond
)

func (t *thought) appendText(text string) {
	t.whole.WriteString(text)
	t.tail = append(t.tail, text[max(len(text)-2*thoughtTailSize, 0):]...)
	if n := len(t.tail); n > 2*thoughtTailSize {
		t.tail = append(t.tail[:0], t.tail[n-thoughtTailSize:]...)
	}
}

// thinkingLine is the line while the model replies: the end of what it thinks, as far as there is room.
func (r *Renderer) thinkingLine(width int) string {
	text := "thinking"
	if took := r.now().Sub(r.stateStart); took >= time.Second {
		text += " " + display.Duration(took.Truncate(time.Second))
	}
	thought := []rune(term.Line(strings.ToValidUTF8(string(r.thought.tail), ""))) // it may begin in the middle of a character
	room := width - len([]rune(text)) - len(": …")
	if len(thought) == 0 || room < 10 {
		return text + " …"
	}
	if len(thought) > room {
		return text + ": …" + string(thought[len(thought)-room:])
	}
	return text + ": " + string(thought)
}

// finishThought shows what the model has thought, shortened, once it does something else.
func (r *Renderer) finishThought() {
	thought := strings.TrimSpace(r.thought.whole.String())
	r.thought.whole.Reset()
	r.thought.tail = r.thought.tail[:0]
	if thought == "" || !r.Side.IsTerminal() && !r.Verbose {
		return
	}
	r.writeRemark("%s", r.Side.Dim("thought: "+r.Excerpt(thought, 2)))
}

// Excerpt is the beginning of a text in so many lines of the screen; all of it where everything is to be shown.
func (r *Renderer) Excerpt(text string, lines int) string {
	if r.Verbose {
		return strings.ReplaceAll(strings.TrimSpace(r.Side.Clean(text)), "\n", "\n  ")
	}
	const indent = len("thought: ")
	return term.Shorten(term.Line(text), max(min(r.Side.Columns(), 200)*lines-indent-1, 40))
}
