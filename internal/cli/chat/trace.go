package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
)

// showTrace shows a saved conversation step by step, or the request to the model with the given
// number, from 1 on.
func showTrace(f *factory.Factory, word string, request int) error {
	folder, err := connect.Folder(".")
	if err != nil {
		return err
	}
	one, err := findSession(word, folder, nil)
	if err != nil {
		return err
	}
	if request > 0 {
		prompt, err := session.ReadPrompt(one.Path, request)
		if err != nil {
			return fmt.Errorf("%s: %w", one.ID, err)
		}
		if f.JSON {
			return f.WriteValue(prompt)
		}
		writePrompt(f.Stdout, prompt)
		return nil
	}
	trace, err := session.ReadTrace(one.Path)
	if err != nil {
		return err
	}
	if f.JSON {
		return f.WriteValue(trace)
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Bold(one.ID)+" "+f.Stdout.Dim(term.Line(cmp.Or(trace.Model, "an unnamed model"))+" in "+term.Line(trace.Folder)))
	for i := range trace.Entries {
		writeEntry(f.Stdout, &trace.Entries[i])
	}
	if trace.Damaged > 0 {
		f.Warn("%s cannot be read", display.Count(trace.Damaged, "line"))
	}
	return nil
}

// writeEntry writes a part of a trace: a line about it, and its text below.
func writeEntry(out *term.Screen, e *session.Entry) {
	about := []string{e.At.Local().Format(time.TimeOnly)}
	switch e.Kind {
	case session.EntryReply:
		about = append(about, fmt.Sprintf("step %d", e.Step))
	case session.EntryRequest:
		about = append(about, "request without a reply in the conversation")
	default:
		about = append(about, e.Kind)
	}
	if e.Prompt > 0 {
		about = append(about, fmt.Sprintf("request %d", e.Prompt))
	}
	if e.Milliseconds > 0 {
		about = append(about, display.Duration(time.Duration(e.Milliseconds)*time.Millisecond))
	}
	if u := e.Usage; u != nil {
		about = append(about, fmt.Sprintf("%s read, %s written", display.Thousands(u.Input), display.Thousands(u.Output)))
	}
	fmt.Fprintln(out, "\n"+out.Dim(strings.Join(about, " · ")))
	if e.Text != "" {
		fmt.Fprintln(out, indentLines(out.Clean(e.Text), "  "))
	}
	for _, c := range e.Calls {
		writeCall(out, &c)
	}
}

func writeCall(out *term.Screen, c *session.CallEntry) {
	mark := map[string]string{"ok": out.Green("✓"), "error": out.Red("✗"), "refused": out.Yellow("–")}[c.Status]
	facts := c.Status
	if c.Milliseconds > 0 {
		facts += ", " + display.Duration(time.Duration(c.Milliseconds)*time.Millisecond)
	}
	if d := c.Decision; d != nil {
		facts += ", " + map[bool]string{true: "allowed", false: "refused"}[d.Allowed] + " by " + d.By
		if d.At != "" {
			facts += " in " + d.At
		}
		if d.Reason != "" && !d.Allowed {
			facts += ": " + d.Reason
		}
	}
	fmt.Fprintf(out, "  %s %s%s %s\n", cmp.Or(mark, "·"), out.Bold(toolname.Display(c.Name)), agentview.Spaced(out.Cyan(agentview.BrieflyInput(json.RawMessage(c.Arguments), out.Width()))), out.Dim("· "+term.Line(facts)))
	if c.Result != "" {
		fmt.Fprintln(out, out.Dim(indentLines(out.Clean(c.Result), "    ")))
	}
}

// writePrompt writes a request to a model, with the estimated tokens of each part.
func writePrompt(out *term.Screen, p *session.Prompt) {
	heading := func(tokens int, text string) {
		fmt.Fprintln(out, out.Bold(text)+" "+out.Dim("~"+display.Count(tokens, "token")))
	}
	heading(p.Tokens.System, "System")
	fmt.Fprintln(out, indentLines(out.Clean(p.System), "  "))
	heading(p.Tokens.Tools, display.Count(len(p.Tools), "tool"))
	for i, tool := range p.Tools {
		fmt.Fprintf(out, "  %s %s\n", toolname.Display(tool.Name), out.Dim("~"+display.Count(p.Tokens.PerTool[i], "token")))
		fmt.Fprintln(out, out.Dim(indentLines(out.Clean(tool.Description+"\n"+string(tool.InputSchema)), "    ")))
	}
	heading(p.Tokens.Messages, display.Count(len(p.Messages), "message"))
	for i, m := range p.Messages {
		fmt.Fprintf(out, "  %s %s\n", out.Bold(string(m.Role)), out.Dim("~"+display.Count(p.Tokens.PerMessage[i], "token")))
		for _, block := range m.Content {
			text := block.String()
			if r := block.ToolResult; r != nil {
				text = text + "\n" + agentview.ResultText(*r)
			}
			fmt.Fprintln(out, indentLines(out.Clean(text), "    "))
		}
	}
}

// indentLines puts a prefix before each line of a text, and removes line breaks at its end.
func indentLines(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}
