package agentview

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// shownCall is a running call in the status lines.
type shownCall struct {
	id        string
	tool      string // display name
	input     json.RawMessage
	startTime time.Time
	progress  string
}

// addCall adds a running call to the status lines.
func (r *Renderer) addCall(e agent.CallStarted) {
	r.EndLine()
	r.calls = append(r.calls, &shownCall{id: e.Call.ID, tool: toolname.Display(e.Call.Name), input: e.Call.Input, startTime: r.now()})
}

func (r *Renderer) setProgress(e agent.CallProgressed) {
	for _, c := range r.calls {
		if c.id == e.Call.ID {
			c.progress = display.ProgressText(e.ProgressParams)
		}
	}
}

// showDecision shows a refusal of a call or of the use of the model.
func (r *Renderer) showDecision(e agent.Approval) {
	switch {
	case e.Allowed:
	case e.Call.ID == "":
		r.writeRemark("%s %s %s", r.Side.Yellow("–"), r.Side.Bold(term.Line(e.Server)), r.Side.Dim("· may not use the model: "+term.Line(e.Reason)))
	default:
		r.refused[e.Call.ID] = true
		r.writeRefusal(&shownCall{tool: toolname.Display(e.Call.Name), input: e.Call.Input}, e.Reason)
	}
}

func (r *Renderer) writeRefusal(c *shownCall, why string) {
	const notRun = "· not run: "
	room := r.Side.Width() - term.TextWidth(c.tool+notRun) - min(term.TextWidth(why), 40) - len("–   ")
	r.writeRemark("%s %s%s %s", r.Side.Yellow("–"), r.Side.Bold(c.tool), Spaced(r.Side.Cyan(BrieflyInput(c.input, room))), r.Side.Dim(notRun+term.Line(why)))
}

// showResult shows the outcome of a call: its time and size, its error, or its refusal.
func (r *Renderer) showResult(e agent.CallEnded) {
	c := &shownCall{tool: toolname.Display(e.Call.Name), input: e.Call.Input}
	r.calls = slices.DeleteFunc(r.calls, func(running *shownCall) bool { return running.id == e.Call.ID })
	if e.Refusal != "" {
		if !r.refused[e.Call.ID] {
			r.writeRefusal(c, e.Refusal)
		}
		return
	}
	mark, facts := r.Side.Green("✓"), DescribeOutcome(e)
	if e.Result.IsError {
		mark = r.Side.Red("✗")
	}
	room := r.Side.Width() - term.TextWidth(c.tool+facts) - len("✓  · ")
	r.writeRemark("%s %s%s %s", mark, r.Side.Bold(c.tool), Spaced(r.Side.Cyan(BrieflyInput(c.input, room))), r.Side.Dim("· "+facts))
	switch text := ResultText(e.Result); {
	case e.Result.IsError:
		r.writeRemark("  %s", r.Side.Red(r.Excerpt(text, 3)))
	case r.Excerpts && !r.Verbose && strings.TrimSpace(text) != "":
		r.writeRemark("  %s", r.Side.Dim(r.Excerpt(text, 3)))
	case r.Verbose && text != "":
		r.writeRemark("  %s", r.Side.Dim(strings.ReplaceAll(strings.TrimRight(r.Side.Clean(text), "\n"), "\n", "\n  ")))
	}
}

// DescribeOutcome returns the time and the size of a call's result, or that it failed.
func DescribeOutcome(e agent.CallEnded) string {
	about := describeSize(e.Result)
	if e.Result.IsError {
		about = "failed"
	}
	return display.Duration(e.Took) + ", " + about
}

// Spaced returns text with a space before it, or "" if text is empty.
func Spaced(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

// statusLine returns the status line of a running call, at most width characters long.
func (c *shownCall) statusLine(now time.Time, width int) string {
	text := "· " + c.tool
	about := c.progress
	if took := now.Sub(c.startTime); took >= time.Second {
		about = strings.TrimSpace(display.Duration(took.Truncate(time.Second)) + " " + about)
	}
	room := width - term.TextWidth(text) - term.TextWidth(about) - 2
	return term.Shorten(strings.TrimRight(text+Spaced(BrieflyInput(c.input, room))+Spaced(about), " "), width)
}

// BrieflyInput formats the arguments of a call as key=value, in at most width characters. It
// returns "" if width is less than 4.
func BrieflyInput(input json.RawMessage, width int) string {
	if width < 4 {
		return ""
	}
	const longest = 60
	var parts []string
	for it := rawjson.Object(input); it.Next(); {
		value := term.RevealLine(string(it.Value))
		if text, ok := rawjson.String(it.Value); ok {
			value = term.RevealLine(text)
			if value == "" || strings.ContainsAny(value, " \"") || json.Valid([]byte(text)) { // keep the string "false" apart from false
				value = `"` + value + `"`
			}
		}
		parts = append(parts, term.RevealLine(string(it.Key))+"="+term.Shorten(value, longest))
	}
	return term.Shorten(strings.Join(parts, " "), width)
}

// ResultText returns the text of a result, one line or more for each block of content. Images and
// other binary data are described in brackets. The text may hold control characters.
func ResultText(r mcp.ToolResultContent) string {
	var parts []string
	for _, block := range r.Content {
		parts = append(parts, block.String())
	}
	return strings.Join(parts, "\n")
}

// describeSize describes a result: its size in bytes, its media types, and its tokens, estimated at
// four characters each.
func describeSize(r mcp.ToolResultContent) string {
	bytes, characters := 0, 0
	var others []string
	for _, block := range r.Content {
		switch data, kind, _ := display.Binary(block); {
		case data != nil:
			bytes += len(data)
			others = append(others, term.Line(kind[strings.LastIndexByte(kind, ' ')+1:]))
		default:
			text := block.String()
			bytes += len(text)
			characters += utf8.RuneCountInString(text)
		}
	}
	parts := append([]string{display.Bytes(bytes)}, others...)
	if characters > 0 {
		parts = append(parts, "~"+display.Count((characters+3)/4, "token"))
	}
	return strings.Join(parts, ", ")
}
