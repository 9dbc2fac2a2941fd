package main

import (
	"strings"
	"time"
)

// thinking is the line while the model replies: the end of what it thinks, as far as there is room.
func (r *renderer) thinking(width int) string {
	text := "thinking"
	if took := r.now().Sub(r.since); took >= time.Second {
		text += " " + brieflyTook(took.Truncate(time.Second))
	}
	thought := []rune(line(r.thought.String()))
	room := width - len([]rune(text)) - len(": …")
	if len(thought) == 0 || room < 10 {
		return text + " …"
	}
	if len(thought) > room {
		return text + ": …" + string(thought[len(thought)-room:])
	}
	return text + ": " + string(thought)
}

// endThought shows what the model has thought, shortened, once it does something else.
func (r *renderer) endThought() {
	thought := strings.TrimSpace(r.thought.String())
	r.thought.Reset()
	if thought == "" || r.side.file == nil && !r.verbose {
		return
	}
	r.remark("%s", r.side.dim("thought: "+r.excerpt(thought, 2)))
}

// excerpt is the beginning of a text in so many lines of the screen; all of it where everything is to be shown.
func (r *renderer) excerpt(text string, lines int) string {
	if r.verbose {
		return strings.ReplaceAll(strings.TrimSpace(r.side.clean(text)), "\n", "\n  ")
	}
	const indent = len("thought: ")
	return shorten(line(text), max(min(r.side.columns(), 200)*lines-indent-1, 40))
}
