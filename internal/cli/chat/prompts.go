package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// sendPrompt says a server's prompt to the model.
func (c *conversation) sendPrompt(ctx context.Context, name, rest string) error {
	it, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	prompts, err := it.ListPrompts(ctx)
	if err != nil {
		return err
	}
	p, err := findPrompt(prompts, name)
	if err != nil {
		return err
	}
	words, err := splitWords(rest)
	if err != nil {
		return err
	}
	given, err := toolargs.ParseArguments(words)
	if err != nil {
		return err
	}
	arguments := toolargs.Texts(given)
	if err := c.askMissingArguments(ctx, p, arguments); err != nil {
		return err
	}
	if err := toolargs.CheckPrompt(p, arguments); err != nil {
		return err
	}
	result, err := it.Toolbox.Client().GetPrompt(ctx, p.Name, arguments)
	if err != nil {
		return err
	}
	content := convertPrompt(result.Messages)
	if len(content) == 0 {
		return fmt.Errorf("the prompt %s is empty", toolname.Display(p.Name))
	}
	for _, block := range content {
		c.view.Note("%s", c.view.Excerpt(block.String(), 6))
	}
	return c.sendMessage(content)
}

func findPrompt(prompts []mcp.Prompt, name string) (mcp.Prompt, error) {
	var known []string
	for _, p := range prompts {
		if p.Name == name || toolname.Display(p.Name) == name {
			return p, nil
		}
		known = append(known, toolname.Display(p.Name))
	}
	return mcp.Prompt{}, exit.WithHelp(exit.Usagef("there is no prompt /%s%s; a message that begins with / is written with //", name, suggest.ForFlag(name, known)), "/prompts")
}

// askMissingArguments asks for the arguments that the prompt needs and that are not given.
func (c *conversation) askMissingArguments(ctx context.Context, p mcp.Prompt, given map[string]string) error {
	for _, a := range p.Arguments {
		if _, ok := given[a.Name]; ok || !a.Required || c.term == nil {
			continue
		}
		if about := term.FirstLine(a.Description); about != "" {
			c.writeLine("  %s", c.view.Side.Dim(about))
		}
		text, err := c.askUser(ctx, term.Line(a.Name)+"=")
		if errors.Is(err, io.EOF) {
			return exit.Usagef("the prompt %s was not said", toolname.Display(p.Name))
		}
		if err != nil {
			return err
		}
		given[a.Name] = text
	}
	return nil
}

// convertPrompt is what a prompt says as something that the user says. What it has the assistant say is told as such.
func convertPrompt(messages []mcp.PromptMessage) (content []mcp.Content) {
	talks := slices.ContainsFunc(messages, func(m mcp.PromptMessage) bool { return m.Role != mcp.RoleUser })
	for _, m := range messages {
		block := m.Content
		switch {
		case block.Type == mcp.ContentText && strings.TrimSpace(block.Text) == "":
			continue
		case talks && block.Type == mcp.ContentText:
			block = mcp.Text(string(m.Role) + ": " + block.Text)
		}
		content = append(content, block)
	}
	return content
}

// splitWords splits a line at its spaces, but for those in quotes: key="two words".
func splitWords(text string) (words []string, err error) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\n' || r == '\t'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, exit.Usagef("there is a %c without its other half", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
