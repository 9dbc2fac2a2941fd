// Package question asks the user whether a call of the model may run: on a terminal, with the whole
// call, its effect, and how its tool has changed.
package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// Asker asks about calls. Set all fields except Choose.
type Asker struct {
	Out     *term.Screen
	Runtime *agentcmd.Runtime
	// Ask shows a prompt and reads one answer. Keys that were typed before the prompt must not
	// count. [io.EOF] refuses the call, another error ends the run.
	Ask func(ctx context.Context, prompt string) (string, error)
	// Choose, if set, replaces Ask where the answers are known: it returns the word of one.
	Choose func(ctx context.Context, prompt string, answers []Answer) (string, error)
	// EditText lets the user edit a text. It returns "" if nothing is changed.
	EditText func(ctx context.Context, text string) (string, error)
}

// AskApproval asks whether a call may run, and repeats the prompt until the user decides. It has
// the form of [agent.Options].Approve. Ctrl-D refuses; Ctrl-C stops the agent's work.
func (a *Asker) AskApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	if q.Sampling != nil {
		return a.askSamplingApproval(ctx, q)
	}
	var edited json.RawMessage
	a.describeCall(q, q.Call.Input)
	for {
		answer, err := a.choose(ctx, fmt.Sprintf("Run %s?", toolname.Display(q.Tool.Name)), approvalAnswers(q))
		if errors.Is(err, io.EOF) {
			return agent.Decision{}, nil
		}
		if err != nil {
			return agent.Decision{}, err
		}
		d := agent.Decision{Allow: true, Arguments: edited}
		switch word, rest, _ := strings.Cut(strings.TrimSpace(answer), " "); word {
		case "y", "Y", "yes":
			return d, nil
		case "s":
			d.For = agent.ThisTool
			return d, nil
		case "server", "S":
			d.For = agent.ThisServer
			return d, nil
		case "r":
			if q.Effect != agent.ReadOnly {
				a.writeLine("%s", a.Out.Yellow("r is for tools that their server calls read-only; ? lists the answers"))
				continue
			}
			return a.trustServer(q, d), nil
		case "a":
			return a.allowAlways(q, d), nil
		case "n", "N", "no":
			return a.askRefusalReason(ctx, rest)
		case "e", "E", "edit":
			if edited, err = a.editArguments(ctx, q, edited); err != nil {
				return d, err
			}
		case "?", "h", "help":
			a.explainApproval(q)
		case "":
		default:
			a.writeLine("%s", a.Out.Yellow(fmt.Sprintf("%q is not an answer; ? lists the answers", word)))
		}
	}
}

// Answer is a possible answer to a question.
type Answer struct {
	Word  string // what the user types
	Also  string // another word with the same meaning, or ""
	About string
}

// approvalAnswers returns the answers to the question whether a call may run.
func approvalAnswers(q agent.Question) []Answer {
	tool, server := toolname.Display(q.Tool.Name), displayServer(q)
	all := []Answer{{Word: "y", About: "run it once"}}
	if q.Effect == agent.ReadOnly {
		all = append(all, Answer{Word: "r", About: fmt.Sprintf("run it, and believe %s about which of its tools are read-only", server)})
	}
	return append(all,
		Answer{Word: "s", About: fmt.Sprintf("run it, and allow %s for this session", tool)},
		Answer{Word: "server", Also: "S", About: fmt.Sprintf("run it, and allow every tool of %s for this session", server)},
		Answer{Word: "a", About: fmt.Sprintf("run it, and never ask about %s again", tool)},
		Answer{Word: "e", About: "change the arguments first"},
		Answer{Word: "n", About: "do not run it; words after n tell the model why"})
}

// samplingAnswers returns the answers to the question whether a server may use the model.
func samplingAnswers(q agent.Question) []Answer {
	return []Answer{
		{Word: "y", About: "allow it once"},
		{Word: "server", Also: "S", About: fmt.Sprintf("let %s use the model for this session", displayServer(q))},
		{Word: "n", About: "refuse; the server gets an error"},
	}
}

// choose asks for one of the answers. The user may type something else.
func (a *Asker) choose(ctx context.Context, prompt string, answers []Answer) (string, error) {
	if a.Choose != nil {
		return a.Choose(ctx, prompt, answers)
	}
	for i, answer := range answers {
		mark := "/"
		if i == 0 {
			mark = " ["
		}
		prompt += mark + answer.Word
	}
	return a.Ask(ctx, prompt+"/?]")
}

// explainAnswers writes a line for each answer.
func (a *Asker) explainAnswers(answers []Answer) {
	for _, answer := range answers {
		word := answer.Word
		if answer.Also != "" {
			word += ", " + answer.Also
		}
		a.writeLine("  %-9s  %s", word, answer.About)
	}
}

// writeLine writes one line of a question to the screen for messages.
func (a *Asker) writeLine(format string, args ...any) {
	fmt.Fprintf(a.Out, format+"\n", args...)
}

// describeCall shows the tool, its effect, and every argument of a call.
func (a *Asker) describeCall(q agent.Question, input json.RawMessage) {
	out := a.Out
	paint := out.Yellow
	if q.Effect == agent.Destructive {
		paint = out.Red
	}
	a.writeLine("\n%s wants to run: %s", out.Bold(toolname.Display(q.Tool.Name)), paint(describeEffect(q)))
	if about := term.FirstLine(term.Reveal(q.Tool.Description)); about != "" {
		a.writeLine("  %s", out.Dim(term.Shorten(about, out.Columns()-6)))
	}
	if q.Effect == agent.ReadOnly {
		a.writeLine("  %s", out.Dim("Any server can say that. If you believe this one, answer r, and its read-only tools run without a question."))
	}
	a.describeChange(q)
	for _, line := range formatLines(input) {
		text := line.text
		switch line.mark {
		case removedMark:
			text = out.Red(text)
		case addedMark:
			text = out.Green(text)
		}
		a.writeLine("  %s %s", out.Dim("│"), text)
	}
}

// describeChange shows how a tool has changed since the user allowed it, in this session or for
// good, or since its first definition was seen.
func (a *Asker) describeChange(q agent.Question) {
	out := a.Out
	change, wasAllowed := a.Runtime.Change(q.Tool.Name)
	var lines []string
	switch {
	case q.Before != nil:
		a.writeLine("  %s", out.Yellow("It has changed since you allowed it:"))
		lines = agentcmd.DescribeToolChange(q.Before, &q.Tool)
	case change == nil:
		return
	default:
		since := "since its first definition was accepted"
		if wasAllowed {
			since = "since you allowed it"
		}
		a.writeLine("  %s", out.Yellow(fmt.Sprintf("It has changed %s (seen %s):", since, change.Time.Local().Format("2006-01-02 15:04"))))
		lines = change.Lines
	}
	for _, line := range lines {
		a.writeLine("    %s", term.RevealLine(line))
	}
}

// describeEffect describes the effect of a tool and whether the server declared it.
func describeEffect(q agent.Question) string {
	source := "as its server declares"
	if a := q.Tool.Annotations; a == nil || a.ReadOnlyHint == nil && a.DestructiveHint == nil {
		source = "its server declares no effect"
	}
	switch q.Effect {
	case agent.ReadOnly:
		return "read-only, " + source
	case agent.Changes:
		return "changes things, destroys nothing, " + source
	}
	return "may be destructive, " + source
}

// FormatArguments formats arguments completely, as "key: value" lines. Strings of several lines
// keep their lines, indented. A string that would read as another JSON value is quoted or marked
// "(text)". A text and its replacement are shown as removed and added lines.
func FormatArguments(input json.RawMessage) (lines []string) {
	for _, line := range formatLines(input) {
		lines = append(lines, line.text)
	}
	return lines
}

// argumentLine is a line of formatted arguments.
type argumentLine struct {
	text string
	mark string // removedMark, addedMark, or ""
}

// formatLines formats arguments as [FormatArguments] says.
func formatLines(input json.RawMessage) (lines []argumentLine) {
	if !rawjson.IsObject(input) {
		return plainLines(term.RevealLine(string(input)))
	}
	replaced, hasReplacement := findReplacement(input)
	for it := rawjson.Object(input); it.Next(); {
		key, kind := term.RevealLine(string(it.Key)), ""
		if edits, ok := formatEdits(it.Value); ok {
			lines = appendIndented(lines, key+":", edits)
			continue
		}
		if hasReplacement && (key == replaced.oldKey || key == replaced.newKey) {
			if key == replaced.oldKey {
				lines = appendIndented(lines, replaced.heading(), replaced.lines)
			}
			continue
		}
		text, isText := rawjson.String(it.Value)
		switch {
		case !isText:
			text = string(factory.IndentJSON(it.Value))
		case !json.Valid([]byte(text)):
		case strings.Contains(text, "\n"):
			kind = " (text)"
		default:
			text = string(it.Value)
		}
		all := strings.Split(strings.TrimSuffix(term.Reveal(text), "\n"), "\n")
		if len(all) == 1 {
			lines = append(lines, argumentLine{text: key + ":" + kind + " " + all[0]})
			continue
		}
		lines = appendIndented(lines, key+":"+kind, plainLines(all...))
	}
	if lines == nil {
		return plainLines("(no arguments)")
	}
	return lines
}

// indent precedes the lines of a value with several lines.
const indent = "    "

// appendIndented appends a heading, and lines that belong to it.
func appendIndented(lines []argumentLine, heading string, more []argumentLine) []argumentLine {
	lines = append(lines, argumentLine{text: heading})
	for _, line := range more {
		line.text = indent + line.text
		lines = append(lines, line)
	}
	return lines
}

func plainLines(texts ...string) (lines []argumentLine) {
	for _, text := range texts {
		lines = append(lines, argumentLine{text: text})
	}
	return lines
}

// allowAlways stores a permanent approval of the tool. If it cannot be stored, the approval holds
// for this session.
func (a *Asker) allowAlways(q agent.Question, d agent.Decision) agent.Decision {
	d.For = agent.ThisTool
	if err := a.Runtime.Always(q.Tool.Name); err != nil {
		a.writeLine("%s", a.Out.Yellow("That is not kept. The tool is allowed for this session: "+term.Printable(err.Error())))
	}
	return d
}

// trustServer stores that the user trusts a server to say which of its tools are read-only. If it
// cannot be stored, that holds for this session.
func (a *Asker) trustServer(q agent.Question, d agent.Decision) agent.Decision {
	d.For = agent.ReadOnlyTools
	if err := a.Runtime.TrustServer(q.Server); err != nil {
		a.writeLine("%s", a.Out.Yellow("That is not kept. It holds for this session: "+term.Printable(err.Error())))
	}
	return d
}

// askRefusalReason refuses a call with a reason for the model. It asks for the reason if it is
// empty.
func (a *Asker) askRefusalReason(ctx context.Context, reason string) (agent.Decision, error) {
	if reason = strings.TrimSpace(reason); reason != "" {
		return agent.Decision{Reason: reason}, nil
	}
	reason, err := a.Ask(ctx, "Why not? The model reads the reason (Enter: no reason):")
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return agent.Decision{Reason: strings.TrimSpace(reason)}, err
}

func (a *Asker) explainApproval(q agent.Question) {
	a.explainAnswers(approvalAnswers(q))
	a.writeLine(`  Ctrl-C     stop the model's work
dowel keeps the answers r and a in your state: dowel trust --list shows them, and dowel trust --revoke takes them back.
The server declares the effect of its tools. Trust that as far as you trust the server.`)
}

// displayServer returns the name of the asking server for a sentence.
func displayServer(q agent.Question) string {
	if q.Server == "" {
		return "its server"
	}
	return term.RevealLine(q.Server)
}

// askSamplingApproval asks whether a server may use the model.
func (a *Asker) askSamplingApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	out := a.Out
	a.writeLine("\n%s wants to ask the model %s, at your cost:", out.Bold(displayServer(q)), term.Line(a.Runtime.Model.Label()))
	for _, text := range formatSampling(q.Sampling) {
		a.writeLine("  %s %s", out.Dim("│"), text)
	}
	for {
		answer, err := a.choose(ctx, "Allow it?", samplingAnswers(q))
		if errors.Is(err, io.EOF) {
			return agent.Decision{}, nil
		}
		if err != nil {
			return agent.Decision{}, err
		}
		switch word, rest, _ := strings.Cut(strings.TrimSpace(answer), " "); word {
		case "y", "Y", "yes":
			return agent.Decision{Allow: true}, nil
		case "server", "S":
			return agent.Decision{Allow: true, For: agent.ThisServer}, nil
		case "n", "N", "no":
			return agent.Decision{Reason: strings.TrimSpace(rest)}, nil
		case "":
		default:
			a.explainAnswers(samplingAnswers(q))
		}
	}
}

// formatSampling formats a sampling request completely: the system prompt, all messages, and the
// tools that the model may call.
func formatSampling(p *mcp.CreateMessageParams) (lines []string) {
	add := func(role, text string) {
		all := strings.Split(strings.TrimSuffix(term.Reveal(text), "\n"), "\n")
		lines = append(lines, role+": "+all[0])
		for _, more := range all[1:] {
			lines = append(lines, "    "+more)
		}
	}
	if p.SystemPrompt != "" {
		add("system", p.SystemPrompt)
	}
	for _, m := range p.Messages {
		for _, block := range m.Content {
			if r := block.ToolResult; r != nil {
				add("result of "+term.RevealLine(r.ToolUseID), formatSampledResult(r))
				continue
			}
			add(term.RevealLine(string(m.Role)), block.String())
		}
	}
	for _, t := range p.Tools {
		add("tool "+term.RevealLine(t.Name), t.Description)
	}
	if p.MaxTokens > 0 {
		lines = append(lines, "at most "+display.Count(p.MaxTokens, "token"))
	}
	return lines
}

// formatSampledResult returns the text of a tool result as the model would read it.
func formatSampledResult(r *mcp.ToolResultContent) string {
	text := agentview.ResultText(*r)
	if text == "" && r.StructuredContent != nil {
		text = string(r.StructuredContent)
	}
	if r.IsError {
		text = "failed: " + text
	}
	return text
}
