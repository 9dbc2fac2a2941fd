package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// shownCall is a call that runs.
type shownCall struct {
	id       string
	tool     string // as people call it
	input    json.RawMessage
	began    time.Time
	progress string
}

func (r *renderer) start(e agent.CallStarted) {
	r.endLine()
	r.calls = append(r.calls, &shownCall{id: e.Call.ID, tool: spoken(e.Call.Name), input: e.Call.Input, began: r.now()})
}

func (r *renderer) progress(e agent.CallProgressed) {
	for _, c := range r.calls {
		if c.id == e.Call.ID {
			c.progress = progressText(e.ProgressParams)
		}
	}
}

// decided shows a call that may not be made.
func (r *renderer) decided(e agent.Approval) {
	switch {
	case e.Allowed:
	case e.Call.ID == "":
		r.remark("%s %s %s", r.side.yellow("–"), r.side.bold(line(e.Server)), r.side.dim("· may not use the model: "+line(e.Reason)))
	default:
		r.refused[e.Call.ID] = true
		r.refuse(&shownCall{tool: spoken(e.Call.Name), input: e.Call.Input}, e.Reason)
	}
}

func (r *renderer) refuse(c *shownCall, why string) {
	const facts = "· not run: "
	room := r.side.width() - utf8.RuneCountInString(c.tool+facts) - min(utf8.RuneCountInString(why), 40) - len("–   ")
	r.remark("%s %s%s %s", r.side.yellow("–"), r.side.bold(c.tool), spaced(r.side.cyan(brieflyInput(c.input, room))), r.side.dim(facts+line(why)))
}

// end shows what a call has come to.
func (r *renderer) end(e agent.CallEnded) {
	c := &shownCall{tool: spoken(e.Call.Name), input: e.Call.Input}
	r.calls = slices.DeleteFunc(r.calls, func(running *shownCall) bool { return running.id == e.Call.ID })
	if e.Refusal != "" {
		if !r.refused[e.Call.ID] {
			r.refuse(c, e.Refusal)
		}
		return
	}
	mark, about := r.side.green("✓"), resultSize(e.Result)
	if e.Result.IsError {
		mark, about = r.side.red("✗"), "failed"
	}
	facts := brieflyTook(e.Took) + ", " + about
	room := r.side.width() - utf8.RuneCountInString(c.tool+facts) - len("✓  · ")
	r.remark("%s %s%s %s", mark, r.side.bold(c.tool), spaced(r.side.cyan(brieflyInput(c.input, room))), r.side.dim("· "+facts))
	switch text := resultText(e.Result); {
	case e.Result.IsError:
		r.remark("  %s", r.side.red(r.excerpt(text, 3)))
	case r.verbose && text != "":
		r.remark("  %s", r.side.dim(strings.ReplaceAll(strings.TrimRight(r.side.clean(text), "\n"), "\n", "\n  ")))
	}
}

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

// running is the line of a call that runs.
func (c *shownCall) running(now time.Time, width int) string {
	text := "· " + c.tool
	about := c.progress
	if took := now.Sub(c.began); took >= time.Second {
		about = strings.TrimSpace(brieflyTook(took.Truncate(time.Second)) + " " + about)
	}
	room := width - utf8.RuneCountInString(text) - utf8.RuneCountInString(about) - 2
	return shorten(strings.TrimRight(text+spaced(brieflyInput(c.input, room))+spaced(about), " "), width)
}

// brieflyInput is arguments in so many characters: key=value for each.
func brieflyInput(input json.RawMessage, width int) string {
	if width < 4 {
		return ""
	}
	const longest = 60
	var parts []string
	for it := rawjson.Object(input); it.Next(); {
		value := revealedLine(string(it.Value))
		if text, ok := rawjson.String(it.Value); ok {
			value = revealedLine(text)
			if value == "" || strings.ContainsAny(value, " \"") || json.Valid([]byte(text)) { // "false" is not false
				value = `"` + value + `"`
			}
		}
		parts = append(parts, revealedLine(string(it.Key))+"="+shorten(value, longest))
	}
	return shorten(strings.Join(parts, " "), width)
}

// resultText is what of a result can be read.
func resultText(r mcp.ToolResultContent) string {
	var parts []string
	for _, block := range r.Content {
		parts = append(parts, block.String())
	}
	return strings.Join(parts, "\n")
}

// resultSize is how much a result is, and about how many tokens it takes.
func resultSize(r mcp.ToolResultContent) string {
	bytes, characters := 0, 0
	var others []string
	for _, block := range r.Content {
		switch data, kind, _ := binary(block); {
		case data != nil:
			bytes += len(data)
			others = append(others, line(kind[strings.LastIndexByte(kind, ' ')+1:]))
		default:
			text := block.String()
			bytes += len(text)
			characters += utf8.RuneCountInString(text)
		}
	}
	parts := append([]string{size(bytes)}, others...)
	if characters > 0 {
		parts = append(parts, "~"+counted((characters+3)/4, "token"))
	}
	return strings.Join(parts, ", ")
}

// brieflyTook is "0.3s", "2s" or "2m05s".
func brieflyTook(d time.Duration) string {
	switch {
	case d < time.Minute && d > 0 && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// counted is "1 step" or "1,200 steps".
func counted(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return grouped(n) + " " + of + "s"
}

// grouped is a number with its thousands apart.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
