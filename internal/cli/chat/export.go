package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/mcp"
)

// exported is the JSON form of a conversation.
type exported struct {
	Model    string          `json:"model"`
	Messages []agent.Message `json:"messages"`
}

// exportConversation writes the conversation for people or for other programs to a new file: as
// JSON if its name ends in .json, else as markdown. Without a file it prints the markdown.
func (c *conversation) exportConversation(ctx context.Context, file string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	messages := rt.Agent.Messages()
	if len(messages) == 0 {
		return exit.Usagef("the conversation is empty")
	}
	content := []byte(writeMarkdown(rt.Model.Label(), messages))
	if strings.EqualFold(filepath.Ext(file), ".json") {
		if content, err = json.MarshalIndent(exported{rt.Model.Label(), messages}, "", "  "); err != nil {
			return err
		}
		content = append(content, '\n')
	}
	if file == "" {
		fmt.Fprint(c.app.Stdout, c.app.Stdout.Clean(string(content)))
		return nil
	}
	if file, err = filepath.Abs(expandHome(file)); err != nil {
		return err
	}
	if err := writeNewFile(file, content); err != nil {
		return err
	}
	fmt.Fprintf(c.app.Stdout, "exported to %s\n", file)
	return nil
}

// writeNewFile writes a file that must not exist yet. Only the user can read it: conversations may
// hold secrets.
func writeNewFile(file string, content []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.Usagef("%s already exists", file)
	}
	if err != nil {
		return exit.Usagef("%s cannot be written: %w", file, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

// writeMarkdown returns a conversation as markdown: a heading for each speaker, and calls and
// results in code blocks.
func writeMarkdown(model string, messages []agent.Message) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# A conversation with %s\n", model)
	last := mcp.Role("")
	for _, m := range messages {
		for _, block := range m.Content {
			switch {
			case block.ToolUse != nil:
				fmt.Fprintf(&text, "\n**Call of %s**\n\n%s", toolname.Display(block.ToolUse.Name), fence("json", string(block.ToolUse.Input)))
				last = ""
			case block.ToolResult != nil:
				heading := "Result"
				if block.ToolResult.IsError {
					heading = "Error"
				}
				fmt.Fprintf(&text, "\n**%s**\n\n%s", heading, fence("", agentview.ResultText(*block.ToolResult)))
				last = ""
			case strings.TrimSpace(block.String()) != "":
				if m.Role != last {
					fmt.Fprintf(&text, "\n## %s\n", map[bool]string{true: "Model", false: "User"}[m.Role == mcp.RoleAssistant])
					last = m.Role
				}
				fmt.Fprintf(&text, "\n%s\n", strings.TrimSpace(block.String()))
			}
		}
	}
	return text.String()
}

// fence returns a code block. Its fence is longer than every run of backticks in the text.
func fence(language, text string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + marks + "\n"
}
