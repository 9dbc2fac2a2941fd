package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// usage shows how much of the model's window is used, and by what.
func (c *chat) usage(ctx context.Context, _ string) error {
	it, err := c.assembled(ctx)
	if err != nil {
		return err
	}
	for _, text := range usageLines(it.agent.Tokens(), it.agent.Messages(), c.app.stdout.width()) {
		fmt.Fprintln(c.app.stdout, text)
	}
	return nil
}

// usageLines lays the figures out: the tools that take most, all messages, and what it comes to.
func usageLines(t agent.Tokens, said []agent.Message, width int) (lines []string) {
	row := func(n int, text string) {
		lines = append(lines, shorten(fmt.Sprintf("%9s  %s", grouped(n), text), width))
	}
	row(t.System, "instructions")
	offered := slices.DeleteFunc(slices.Clone(t.PerTool), func(t agent.ToolTokens) bool { return !t.Offered })
	row(t.Tools, "definitions of "+counted(len(offered), "tool"))
	slices.SortStableFunc(offered, func(a, b agent.ToolTokens) int { return cmp.Compare(b.Tokens, a.Tokens) })
	const most = 10
	for _, tool := range offered[:min(most, len(offered))] {
		row(tool.Tokens, "  "+spoken(tool.Name))
	}
	rest := 0
	for _, tool := range offered[min(most, len(offered)):] {
		rest += tool.Tokens
	}
	if rest > 0 {
		row(rest, "  "+counted(len(offered)-most, "other"))
	}
	if hidden := len(t.PerTool) - len(offered); hidden > 0 {
		lines = append(lines, fmt.Sprintf("%9s  %s found by search when the model needs them", "", counted(hidden, "more tool")))
	}
	row(t.Messages, counted(len(said), "message"))
	for i, n := range t.PerMessage {
		if i < len(said) {
			row(n, "  "+aboutMessage(&said[i]))
		}
	}
	total := "in all"
	if t.Window > 0 {
		total += fmt.Sprintf(", %.0f%% of the window of %s", 100*float64(t.Total)/float64(t.Window), grouped(t.Window))
	}
	if t.Estimated {
		total += ", estimated: the provider has not said yet"
	}
	row(t.Total, total)
	spent := fmt.Sprintf("spent so far: %s read", grouped(t.Spent.Input))
	if t.Spent.Cached > 0 {
		spent += fmt.Sprintf(" (%s of them cached)", grouped(t.Spent.Cached))
	}
	return append(lines, fmt.Sprintf("%9s  %s, %s written", "", spent, grouped(t.Spent.Output)))
}

// aboutMessage is a message in a line.
func aboutMessage(m *agent.Message) string {
	who := "you: "
	if m.Role == mcp.RoleAssistant {
		who = "model: "
	}
	for _, block := range m.Content {
		switch {
		case block.ToolResult != nil:
			who, text := "results: ", resultText(*block.ToolResult)
			return who + firstLine(text)
		case block.ToolUse != nil:
			return "model: calls " + spoken(block.ToolUse.Name) + spaced(brieflyInput(block.ToolUse.Input, 60))
		case firstLine(block.String()) != "":
			return who + firstLine(block.String())
		}
	}
	return who
}

// saveCopy writes the conversation to a file of its own, which must not be there yet, in a folder that is there.
func (c *chat) saveCopy(file string, h session.Header, said []agent.Message, m chosenModel) error {
	file, err := filepath.Abs(atHome(file))
	if err != nil {
		return err
	}
	if _, err := folder(filepath.Dir(file)); err != nil {
		return usagef("%s cannot be saved: %w", file, err)
	}
	s := session.At(file, h)
	err = saved(s, said, m)
	if err == nil {
		err = s.Close()
	}
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s is there already", file)
	}
	if err == nil {
		fmt.Fprintf(c.app.stdout, "saved to %s\n", file)
	}
	return err
}
