package chat

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
	"github.com/dowel-mcp/dowel/mcp"
)

// editLast takes the user's last message and the replies to it out of the conversation, and puts
// its text into the input. What the tools have done stays done.
func (c *conversation) editLast(ctx context.Context, _ string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	messages := rt.Agent.Messages()
	at := len(messages) - 1
	for at >= 0 && !isTyped(messages[at]) {
		at--
	}
	if at < 0 {
		return exit.Usagef("there is no message to edit")
	}
	text := messages[at].Content[0].Text
	rt.Continue(messages[:at], c.resultsFolder(), c.mode)
	c.updateSession(func(s *session.Session) error { return s.Sync(messages[:at]) })
	c.view.Context(rt.Agent.Tokens())
	c.view.Note("your last message and the replies to it are taken back; what tools did stays done")
	if c.screen != nil {
		c.screen.post(screen.Drafted{Text: text})
	} else {
		c.prefill = strings.ReplaceAll(text, "\n", " ")
	}
	return nil
}

// isTyped reports whether a message is from the user, and not the results of calls.
func isTyped(m agent.Message) bool {
	return m.Role == mcp.RoleUser && len(m.Content) > 0 && m.Content[0].Text != ""
}

// resultsFolder returns the folder of long results, or "".
func (c *conversation) resultsFolder() string {
	switch {
	case c.session != nil:
		return c.session.Results()
	case c.pendingSession != nil:
		return c.pendingSession.Results()
	}
	return ""
}

// messagePrefix begins the names of files for the user's editor.
const messagePrefix = "dowel-message-"

// openEditor returns the user's editor for a message, and a function that reads what it has
// written.
func openEditor(text string) (program *exec.Cmd, read func(error) (string, error), err error) {
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(editor) == 0 {
		return nil, nil, exit.Usagef("set $VISUAL or $EDITOR to the editor that Ctrl-G opens")
	}
	atomicfile.RemoveForgotten(messagePrefix)
	file, err := os.CreateTemp("", messagePrefix+"*.md") // mode 0600
	if err != nil {
		return nil, nil, err
	}
	_, err = file.WriteString(text)
	if err = cmp.Or(err, file.Close()); err != nil {
		return nil, nil, cmp.Or(err, os.Remove(file.Name()))
	}
	read = func(failed error) (string, error) {
		defer os.Remove(file.Name())
		if failed != nil {
			return "", fmt.Errorf("%s: %w; the message stays as it was", editor[0], failed)
		}
		changed, err := os.ReadFile(file.Name())
		return string(changed), err
	}
	return exec.Command(editor[0], append(editor[1:], file.Name())...), read, nil
}
