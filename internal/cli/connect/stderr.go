package connect

import (
	"bytes"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
)

// stderrLines shows what a server writes to its stderr where that has to be JSON: an object for each line.
type stderrLines struct {
	screen *term.Screen
	rest   []byte // the beginning of a line
}

// Write implements [io.Writer].
func (l *stderrLines) Write(text []byte) (int, error) {
	const most = 64 << 10
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte{'\n'})
		if !whole {
			break
		}
		l.show(line)
		l.rest = rest
	}
	if len(l.rest) > most {
		l.flush()
	}
	return len(text), nil
}

// flush shows a line that has not ended.
func (l *stderrLines) flush() {
	if len(l.rest) > 0 {
		l.show(l.rest)
		l.rest = nil
	}
}

func (l *stderrLines) show(line []byte) {
	factory.WriteJSONLine(l.screen, map[string]any{"stderr": string(bytes.TrimSuffix(line, []byte{'\r'}))})
}
