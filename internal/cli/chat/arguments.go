package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/term"
)

// editText lets the user edit text in $VISUAL or $EDITOR, or on one line if neither is set. It
// returns "" if the editor fails.
func (c *conversation) editText(ctx context.Context, text string) (string, error) {
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(editor) == 0 || c.term == nil {
		flat := text
		if compact, err := json.Marshal(json.RawMessage(text)); err == nil {
			flat = string(compact)
		}
		return c.readAnswer(ctx, term.Question{Prompt: c.side.Bold("Arguments:") + " ", Prefill: flat, Answer: true, Fresh: true})
	}
	const prefix = "dowel-arguments-"
	atomicfile.RemoveForgotten(prefix)
	file, err := os.CreateTemp("", prefix+"*.json") // mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(text + "\n")
	if err = cmp.Or(err, file.Close()); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], file.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.term.In, c.term.Out, c.term.Out
	if err := cmd.Run(); err != nil {
		c.writeLine("%s", c.side.Yellow(fmt.Sprintf("%s: %v", editor[0], err)))
		return "", context.Cause(ctx)
	}
	changed, err := os.ReadFile(file.Name())
	return string(changed), err
}
