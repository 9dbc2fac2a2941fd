package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// prompt says a server's prompt to the model.
func (c *chat) prompt(ctx context.Context, name, rest string) error {
	it, err := c.assembled(ctx)
	if err != nil {
		return err
	}
	prompts, err := it.listPrompts(ctx)
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
	given, err := parseArguments(words)
	if err != nil {
		return err
	}
	arguments := texts(given)
	if err := c.askMissing(ctx, p, arguments); err != nil {
		return err
	}
	if err := checkPrompt(p, arguments); err != nil {
		return err
	}
	result, err := it.toolbox.Client().GetPrompt(ctx, p.Name, arguments)
	if err != nil {
		return err
	}
	content := promptContent(result.Messages)
	if len(content) == 0 {
		return fmt.Errorf("the prompt %s is empty", spoken(p.Name))
	}
	for _, block := range content {
		c.show.note("%s", c.show.excerpt(block.String(), 6))
	}
	return c.send(content)
}

func findPrompt(prompts []mcp.Prompt, name string) (mcp.Prompt, error) {
	var known []string
	for _, p := range prompts {
		if p.Name == name || spoken(p.Name) == name {
			return p, nil
		}
		known = append(known, spoken(p.Name))
	}
	return mcp.Prompt{}, seeing(usagef("there is no prompt /%s%s; a message that begins with / is written with //", name, meant(name, known)), "/prompts")
}

// askMissing asks for the arguments that the prompt needs and that are not given.
func (c *chat) askMissing(ctx context.Context, p mcp.Prompt, given map[string]string) error {
	for _, a := range p.Arguments {
		if _, ok := given[a.Name]; ok || !a.Required || c.term == nil {
			continue
		}
		if about := firstLine(a.Description); about != "" {
			c.tell("  %s", c.show.side.dim(about))
		}
		text, err := c.answer(ctx, line(a.Name)+"=")
		if errors.Is(err, io.EOF) {
			return usagef("the prompt %s was not said", spoken(p.Name))
		}
		if err != nil {
			return err
		}
		given[a.Name] = text
	}
	return nil
}

// promptContent is what a prompt says as something that the user says. What it has the assistant say is told as such.
func promptContent(messages []mcp.PromptMessage) (content []mcp.Content) {
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
		return nil, usagef("there is a %c without its other half", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
