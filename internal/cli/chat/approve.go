package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// askApproval puts a question of the agent's to the user, who is asked until there is an answer.
func (c *conversation) askApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	c.view.Hold(true)
	defer c.view.Hold(false)
	if q.Sampling != nil {
		return c.askSamplingApproval(ctx, q)
	}
	var edited json.RawMessage
	c.describeCall(q, q.Call.Input)
	for {
		answer, err := c.askUser(ctx, c.approvalPrompt(q))
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
		case "a":
			return c.allowAlways(q, d), nil
		case "n", "N", "no":
			return c.askRefusalReason(ctx, rest)
		case "e", "E", "edit":
			if edited, err = c.editArguments(ctx, q, edited); err != nil {
				return d, err
			}
		case "?", "h", "help":
			c.explainApproval(q)
		case "":
		default:
			c.writeLine("%s", c.view.Side.Yellow(fmt.Sprintf("%q is no answer; ? explains them", word)))
		}
	}
}

func (c *conversation) approvalPrompt(q agent.Question) string {
	return fmt.Sprintf("Run %s? [y/s/server/a/e/n/?]", toolname.Display(q.Tool.Name))
}

// writeLine writes a line of a question.
func (c *conversation) writeLine(format string, args ...any) {
	fmt.Fprintf(c.view.Side, format+"\n", args...)
}

// askUser reads the answer to a question. Ctrl-C stops what has asked.
func (c *conversation) askUser(ctx context.Context, prompt string) (string, error) {
	return c.readAnswer(ctx, term.Question{Prompt: c.view.Side.Bold(prompt) + " ", Answer: true, Fresh: true})
}

func (c *conversation) readAnswer(ctx context.Context, a term.Question) (string, error) {
	text, err := c.in.ReadLine(ctx, a)
	if errors.Is(err, term.ErrInterrupted) {
		c.interrupts.handlePress()
		if err = context.Cause(ctx); err == nil {
			err = errStopped
		}
	}
	if err == nil {
		c.interrupts.forgetPress()
	}
	return text, err
}

// describeCall shows all that the decision is about.
func (c *conversation) describeCall(q agent.Question, input json.RawMessage) {
	out := c.view.Side
	paint := out.Yellow
	if q.Effect == agent.Destructive {
		paint = out.Red
	}
	c.writeLine("\n%s wants to run: %s", out.Bold(toolname.Display(q.Tool.Name)), paint(describeEffect(q)))
	if about := term.FirstLine(term.Reveal(q.Tool.Description)); about != "" {
		c.writeLine("  %s", out.Dim(term.Shorten(about, out.Columns()-3)))
	}
	for _, text := range formatArguments(input) {
		c.writeLine("  %s %s", out.Dim("│"), text)
	}
}

// describeEffect say what a tool may do, and who says so.
func describeEffect(q agent.Question) string {
	said := "by its own word"
	if a := q.Tool.Annotations; a == nil || a.ReadOnlyHint == nil && a.DestructiveHint == nil {
		said = "it does not say what it may do"
	}
	switch q.Effect {
	case agent.ReadOnly:
		return "read-only, " + said
	case agent.Changes:
		return "it changes things, and destroys nothing, " + said
	}
	return "it may be destructive, " + said
}

// formatArguments are the arguments in lines, nothing left out: key: value for each, and texts of several lines as they are. What is
// a text and could be taken for another value is told to be one.
func formatArguments(input json.RawMessage) (lines []string) {
	if !rawjson.IsObject(input) {
		return []string{term.RevealLine(string(input))}
	}
	for it := rawjson.Object(input); it.Next(); {
		key, kind := term.RevealLine(string(it.Key)), ""
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
			lines = append(lines, key+":"+kind+" "+all[0])
			continue
		}
		lines = append(lines, key+":"+kind)
		for _, one := range all {
			lines = append(lines, "    "+one)
		}
	}
	if lines == nil {
		return []string{"(no arguments)"}
	}
	return lines
}

// allowAlways keeps that the tool needs no approval any more; where that cannot be kept it holds for the session.
func (c *conversation) allowAlways(q agent.Question, d agent.Decision) agent.Decision {
	d.For = agent.ThisTool
	if err := c.runtime.Always(q.Tool.Name); err != nil {
		c.writeLine("%s", c.view.Side.Yellow("That is not kept, and holds for this session: "+term.Printable(err.Error())))
	}
	return d
}

// askRefusalReason asks why not, unless that was said.
func (c *conversation) askRefusalReason(ctx context.Context, reason string) (agent.Decision, error) {
	if reason = strings.TrimSpace(reason); reason != "" {
		return agent.Decision{Reason: reason}, nil
	}
	reason, err := c.askUser(ctx, "Why not? The model reads it (Enter: no reason):")
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return agent.Decision{Reason: strings.TrimSpace(reason)}, err
}

func (c *conversation) explainApproval(q agent.Question) {
	c.writeLine(`  y          runs it once
  s          runs it, and %[1]s without a question for the rest of this session
  server, S  runs it, and every tool of %[2]s without a question for the rest of this session
  a          runs it, and %[1]s never asks again: dowel keeps that in your own state
  e          changes the arguments first
  n          does not run it; n and some words tell the model why
  Ctrl-C     stops the model's work altogether
What a tool may do is what its server says of it, which is as good as the server.`, toolname.Display(q.Tool.Name), displayServer(q))
}

func displayServer(q agent.Question) string {
	if q.Server == "" {
		return "its server"
	}
	return term.RevealLine(q.Server)
}

// askSamplingApproval asks whether a server may use the model.
func (c *conversation) askSamplingApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	out := c.view.Side
	c.writeLine("\n%s wants to ask the model %s, at your cost:", out.Bold(displayServer(q)), term.Line(c.runtime.Model.Label()))
	for _, text := range formatSampling(q.Sampling) {
		c.writeLine("  %s %s", out.Dim("│"), text)
	}
	for {
		answer, err := c.askUser(ctx, "Let it? [y/server/n/?]")
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
			c.writeLine("  y          lets it, once\n  server, S  lets %s use the model for the rest of this session\n  n          does not; the server is told so", displayServer(q))
		}
	}
}

// formatSampling are what a server wants to ask: all that is said, and which tools the model may ask the server to call.
func formatSampling(p *mcp.CreateMessageParams) (lines []string) {
	add := func(who, text string) {
		all := strings.Split(strings.TrimSuffix(term.Reveal(text), "\n"), "\n")
		lines = append(lines, who+": "+all[0])
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

// formatSampledResult is all that the model would read of a result.
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
