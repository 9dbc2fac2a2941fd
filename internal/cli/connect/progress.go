package connect

import (
	"encoding/json"
	"fmt"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// CallOptions returns the options of a call. It requests progress and shows it on stderr: as a
// status line on a terminal, or as lines with --verbose. With --json it does so only with
// --verbose.
func (conn *Connection) CallOptions() (o client.CallOptions) {
	switch {
	case conn.JSON && conn.IsVerbose():
		o.OnProgress = func(p mcp.ProgressParams) {
			factory.WriteJSONLine(conn.Stderr, map[string]any{"progress": progressFields(p)})
		}
	case conn.JSON:
	case conn.Stderr.IsTerminal():
		o.OnProgress = func(p mcp.ProgressParams) { conn.Stderr.SetStatus(display.ProgressText(p)) }
	case conn.IsVerbose():
		o.OnProgress = func(p mcp.ProgressParams) { fmt.Fprintln(conn.Stderr, display.ProgressText(p)) }
	}
	if conn.log != "" {
		o.OnLog = conn.showLog
	}
	return o
}

// progressFields returns the JSON form of progress.
func progressFields(p mcp.ProgressParams) map[string]any {
	fields := map[string]any{"progress": p.Progress}
	if p.Total != 0 {
		fields["total"] = p.Total
	}
	if p.Message != "" {
		fields["message"] = p.Message
	}
	return fields
}

// showLog writes a log message of the server to stderr.
func (conn *Connection) showLog(p mcp.LoggingMessageParams) {
	if conn.JSON {
		factory.WriteJSONLine(conn.Stderr, map[string]any{"log": logLine{p.Level, p.Logger, p.Data}})
		return
	}
	text, ok := rawjson.String(p.Data)
	if !ok {
		text = string(p.Data)
	}
	paint := conn.Stderr.Dim
	switch severity := p.Level.Severity(); {
	case severity >= mcp.LevelError.Severity():
		paint = conn.Stderr.Red
	case severity >= mcp.LevelWarning.Severity():
		paint = conn.Stderr.Yellow
	}
	from := ""
	if p.Logger != "" {
		from = term.Line(p.Logger) + ": "
	}
	fmt.Fprintf(conn.Stderr, "%s %s%s\n", paint("["+term.Line(string(p.Level))+"]"), from, conn.Stderr.Clean(text))
}

// logLine is the JSON form of a log message.
type logLine struct {
	Level  mcp.LoggingLevel `json:"level"`
	Logger string           `json:"logger,omitempty"`
	Data   json.RawMessage  `json:"data"`
}
