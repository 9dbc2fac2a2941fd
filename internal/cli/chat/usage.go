package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// showUsage shows how many tokens each part of the conversation uses.
func (c *conversation) showUsage(ctx context.Context, _ string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	for _, text := range formatUsage(rt.Agent.Tokens(), rt.Agent.Messages(), rt.Model, c.app.Stdout.Width()) {
		fmt.Fprintln(c.app.Stdout, text)
	}
	return nil
}

// formatUsage formats token counts: the ten largest tools, every message, the total, and the tokens
// spent so far, with their cost if the model's price is known. Rows with counts are shortened to
// width characters.
func formatUsage(t agent.Tokens, messages []agent.Message, model modelregistry.Choice, width int) (lines []string) {
	row := func(n int, text string) {
		lines = append(lines, term.Shorten(fmt.Sprintf("%9s  %s", display.Thousands(n), text), width))
	}
	row(t.System, "instructions")
	offered := slices.DeleteFunc(slices.Clone(t.PerTool), func(t agent.ToolTokens) bool { return !t.Offered })
	row(t.Tools, "definitions of "+display.Count(len(offered), "tool"))
	slices.SortStableFunc(offered, func(a, b agent.ToolTokens) int { return cmp.Compare(b.Tokens, a.Tokens) })
	const most = 10
	for _, tool := range offered[:min(most, len(offered))] {
		row(tool.Tokens, "  "+toolname.Display(tool.Name))
	}
	rest := 0
	for _, tool := range offered[min(most, len(offered)):] {
		rest += tool.Tokens
	}
	if rest > 0 {
		row(rest, "  "+display.Count(len(offered)-most, "other"))
	}
	if hidden := len(t.PerTool) - len(offered); hidden > 0 {
		lines = append(lines, fmt.Sprintf("%9s  %s found by search when the model needs them", "", display.Count(hidden, "more tool")))
	}
	row(t.Messages, display.Count(len(messages), "message"))
	for i, n := range t.PerMessage {
		if i < len(messages) {
			row(n, "  "+summarizeMessage(&messages[i]))
		}
	}
	total := "in all"
	if t.Window > 0 {
		total += fmt.Sprintf(", %.0f%% of the window of %s", 100*float64(t.Total)/float64(t.Window), display.Thousands(t.Window))
	}
	if t.Estimated {
		total += ", estimated until the provider reports usage"
	}
	row(t.Total, total)
	spent := fmt.Sprintf("spent so far: %s read", display.Thousands(t.Spent.Input))
	if t.Spent.Cached > 0 {
		spent += fmt.Sprintf(" (%s of them cached)", display.Thousands(t.Spent.Cached))
	}
	spent += fmt.Sprintf(", %s written", display.Thousands(t.Spent.Output))
	if cost, ok := model.Cost(t.Spent); ok {
		spent += fmt.Sprintf(", $%.2f by the price of %s", cost, model.Label())
	}
	return append(lines, fmt.Sprintf("%9s  %s", "", spent))
}

// summarizeMessage returns the sender of a message and its first line or call.
func summarizeMessage(m *agent.Message) string {
	sender := "you: "
	if m.Role == mcp.RoleAssistant {
		sender = "model: "
	}
	for _, block := range m.Content {
		switch {
		case block.ToolResult != nil:
			text := agentview.ResultText(*block.ToolResult)
			return "results: " + term.FirstLine(text)
		case block.ToolUse != nil:
			return "model: calls " + toolname.Display(block.ToolUse.Name) + agentview.Spaced(agentview.BrieflyInput(block.ToolUse.Input, 60))
		case term.FirstLine(block.String()) != "":
			return sender + term.FirstLine(block.String())
		}
	}
	return sender
}

// saveCopy writes the conversation to a new file. The file must not exist; its folder must.
func (c *conversation) saveCopy(file string, h session.Header, messages []agent.Message, m modelregistry.Choice) error {
	file, err := filepath.Abs(expandHome(file))
	if err != nil {
		return err
	}
	if _, err := connect.Folder(filepath.Dir(file)); err != nil {
		return exit.Usagef("%s cannot be saved: %w", file, err)
	}
	s := session.At(file, h)
	err = sessionlog.Write(s, messages, m)
	if err == nil {
		err = s.Close()
	}
	if errors.Is(err, fs.ErrExist) {
		return exit.Usagef("%s already exists", file)
	}
	if err == nil {
		fmt.Fprintf(c.app.Stdout, "saved to %s\n", file)
	}
	return err
}

// showContext shows how much of the context is used, and the cost so far if the model's price is
// known.
func (c *conversation) showContext(rt *agentcmd.Runtime) {
	tokens, cost := rt.Agent.Tokens(), ""
	if dollars, ok := rt.Model.Cost(tokens.Spent); ok {
		cost = fmt.Sprintf("$%.2f", dollars)
	}
	c.view.Context(tokens, cost)
}
