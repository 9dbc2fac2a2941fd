package agentcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/mcp"
)

// FindPrompt returns the prompt with the given name, on the wire or for people. The error is a
// usage error.
func FindPrompt(prompts []mcp.Prompt, name string) (mcp.Prompt, error) {
	var known []string
	for _, p := range prompts {
		if p.Name == name || toolname.Display(p.Name) == name {
			return p, nil
		}
		known = append(known, toolname.Display(p.Name))
	}
	return mcp.Prompt{}, exit.WithHelp(exit.Usagef("unknown prompt /%s%s", name, suggest.ForFlag(name, known)), "dowel prompts")
}

// FillPrompt gets a prompt from its server, as one message of the user.
func (r *Runtime) FillPrompt(ctx context.Context, p mcp.Prompt, arguments map[string]string) ([]mcp.Content, error) {
	result, err := r.Toolbox.Client().GetPrompt(ctx, p.Name, arguments)
	if err != nil {
		return nil, err
	}
	content := promptContent(result.Messages)
	if len(content) == 0 {
		return nil, fmt.Errorf("the prompt %s is empty", toolname.Display(p.Name))
	}
	return content, nil
}

// promptContent converts a prompt to one user message. If the prompt has messages of the assistant,
// each text begins with its role.
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
