package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// callOptions asks for progress where somebody sees it: one line that changes on a terminal, else lines with --verbose.
func (a *connection) callOptions() (o client.CallOptions) {
	switch {
	case a.json && a.verbose:
		o.OnProgress = func(p mcp.ProgressParams) { encodeLine(a.stderr, map[string]any{"progress": progressLine(p)}) }
	case a.json:
	case a.stderr.isTerminal():
		o.OnProgress = func(p mcp.ProgressParams) { a.stderr.show(progressText(p)) }
	case a.verbose:
		o.OnProgress = func(p mcp.ProgressParams) { fmt.Fprintln(a.stderr, progressText(p)) }
	}
	if a.log != "" {
		o.OnLog = a.showLog
	}
	return o
}

func progressLine(p mcp.ProgressParams) map[string]any {
	fields := map[string]any{"progress": p.Progress}
	if p.Total != 0 {
		fields["total"] = p.Total
	}
	if p.Message != "" {
		fields["message"] = p.Message
	}
	return fields
}

// progressText is "[#####-----] 2/4 reading".
func progressText(p mcp.ProgressParams) string {
	text := number(p.Progress)
	if p.Total > 0 {
		const width = 20
		done := int(min(max(p.Progress/p.Total, 0), 1) * width)
		text = fmt.Sprintf("[%s%s] %s/%s", strings.Repeat("#", done), strings.Repeat("-", width-done), text, number(p.Total))
	}
	if p.Message != "" {
		text += " " + line(p.Message)
	}
	return text
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// showLog shows a log message of the server.
func (a *connection) showLog(p mcp.LoggingMessageParams) {
	if a.json {
		encodeLine(a.stderr, map[string]any{"log": logLine{p.Level, p.Logger, p.Data}})
		return
	}
	text, ok := rawjson.String(p.Data)
	if !ok {
		text = string(p.Data)
	}
	paint := a.stderr.dim
	switch severity := p.Level.Severity(); {
	case severity >= mcp.LevelError.Severity():
		paint = a.stderr.red
	case severity >= mcp.LevelWarning.Severity():
		paint = a.stderr.yellow
	}
	from := ""
	if p.Logger != "" {
		from = line(p.Logger) + ": "
	}
	fmt.Fprintf(a.stderr, "%s %s%s\n", paint("["+line(string(p.Level))+"]"), from, a.stderr.clean(text))
}

type logLine struct {
	Level  mcp.LoggingLevel `json:"level"`
	Logger string           `json:"logger,omitempty"`
	Data   json.RawMessage  `json:"data"`
}
