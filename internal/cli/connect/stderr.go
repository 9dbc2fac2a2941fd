package connect

import (
	"bytes"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
)

// stderrLines writes each line of a server's stderr as a JSON object, for --json.
type stderrLines struct {
	screen  *term.Screen
	partial []byte // a line without its end yet
}

// Write implements [io.Writer].
func (l *stderrLines) Write(text []byte) (int, error) {
	const most = 64 << 10
	l.partial = append(l.partial, text...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte{'\n'})
		if !whole {
			break
		}
		l.writeLine(line)
		l.partial = rest
	}
	if len(l.partial) > most {
		l.flush()
	}
	return len(text), nil
}

// flush writes the partial line.
func (l *stderrLines) flush() {
	if len(l.partial) > 0 {
		l.writeLine(l.partial)
		l.partial = nil
	}
}

func (l *stderrLines) writeLine(line []byte) {
	factory.WriteJSONLine(l.screen, map[string]any{"stderr": string(bytes.TrimSuffix(line, []byte{'\r'}))})
}
