package chat

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/opentask"
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
	at, block := findInput(messages, c.lastInput)
	switch {
	case len(messages) == 0:
		return exit.Usagef("there is no message to edit")
	case at < 0:
		return exit.Usagef("your last message is no longer in the conversation as you wrote it, so it cannot be edited: it was compacted, or belongs to an earlier dowel")
	}
	text := messages[at].Content[block].Text
	kept := messages[:at]
	if block > 0 { // such as the results of calls that the user has stopped
		before := messages[at]
		before.Content = before.Content[:block:block]
		kept = append(slices.Clone(kept), before)
	}
	c.lastInput = nil
	lost := slices.DeleteFunc(session.OpenTasks(messages), func(o opentask.Task) bool { return slices.Contains(session.OpenTasks(kept), o) })
	rt.Continue(c.flags.Session, kept, c.resultsFolder(), c.mode)
	c.followTasks(rt)
	if err := c.log.ReleaseTasks(lost); err != nil {
		return err
	}
	c.log.EndRun(kept)
	c.showContext(rt)
	c.view.Note("your last message and the replies to it are taken back; what tools did stays done")
	if len(lost) > 0 {
		c.view.Note("%s, and the conversation does not get the result; dowel task list shows it", describeOpen(rt, lost))
	}
	if c.screen != nil {
		c.screen.post(screen.Drafted{Text: text})
	} else {
		c.prefill = strings.ReplaceAll(text, "\n", " ")
	}
	return nil
}

// findInput returns the message and the block in it at which the user's last input begins. The
// agent joins what a user says after another with it. Without an input, which is unknown in a
// conversation that was resumed, it returns the last message of the user if that has one block
// alone. at is -1 without such a message.
func findInput(messages []agent.Message, input []mcp.Content) (at, block int) {
	for at = len(messages) - 1; at >= 0; at-- {
		m := messages[at]
		switch {
		case m.Role != mcp.RoleUser:
			continue
		case len(input) == 0 && (len(m.Content) == 0 || m.Content[0].ToolResult != nil):
			continue // the results of calls
		case len(input) == 0 && (len(m.Content) > 1 || m.Content[0].Text == ""):
			return -1, 0
		case len(input) == 0:
			return at, 0
		}
		for block = len(m.Content) - len(input); block >= 0; block-- {
			if holdsInput(m.Content[block:], input) {
				return at, block
			}
		}
	}
	return -1, 0
}

// holdsInput reports whether content begins with the blocks of an input.
func holdsInput(content, input []mcp.Content) bool {
	for i := range input {
		if content[i].Type != input[i].Type || content[i].Text != input[i].Text {
			return false
		}
	}
	return true
}

// resultsFolder returns the folder of long results, or "".
func (c *conversation) resultsFolder() string {
	switch {
	case c.log.Session != nil:
		return c.log.Session.Results()
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
