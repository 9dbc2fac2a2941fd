package chat

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// sendPrompt gets a prompt from its server and sends it to the model. It asks the user for missing
// arguments.
func (c *conversation) sendPrompt(ctx context.Context, name, rest string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	prompts, err := rt.ListPrompts(ctx)
	if err != nil {
		return err
	}
	p, err := agentcmd.FindPrompt(prompts, name)
	if err != nil {
		return exit.WithHelp(exit.Usagef("%w; write // to send a message that begins with /", err), "/prompts")
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
	content, err := rt.FillPrompt(ctx, p, arguments)
	if err != nil {
		return err
	}
	for _, block := range content {
		c.view.Note("%s", c.view.Excerpt(block.String(), 6))
	}
	return c.sendMessage(content)
}

// askMissingArguments asks the user for required arguments that are missing in given, and adds
// them. Without a terminal it asks nothing.
func (c *conversation) askMissingArguments(ctx context.Context, p mcp.Prompt, given map[string]string) error {
	for _, a := range p.Arguments {
		if _, ok := given[a.Name]; ok || !a.Required || !c.isInteractive() {
			continue
		}
		if about := term.FirstLine(a.Description); about != "" {
			c.writeLine("  %s", c.side.Dim(about))
		}
		text, err := c.askUser(ctx, term.Line(a.Name)+"=")
		if errors.Is(err, io.EOF) {
			return exit.Usagef("the prompt %s was not sent", toolname.Display(p.Name))
		}
		if err != nil {
			return err
		}
		given[a.Name] = text
	}
	return nil
}

// splitWords splits a line at spaces outside quotes: key="two words" is one word.
func splitWords(text string) (words []string, err error) {
	var word strings.Builder
	quote, inWord := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && (r == ' ' || r == '\n' || r == '\t'):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, exit.Usagef("missing closing %c", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
