package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
)

// editArguments lets the user edit the arguments of a call until they match the tool's schema, and
// shows the edited call. It returns before, the result of an earlier edit, if the user changes
// nothing; nil means that the call's own arguments apply.
func (c *conversation) editArguments(ctx context.Context, q agent.Question, before json.RawMessage) (json.RawMessage, error) {
	current := q.Call.Input
	if before != nil {
		current = before
	}
	text := string(factory.IndentJSON(current))
	for {
		changed, err := c.editText(ctx, text)
		if errors.Is(err, io.EOF) || err == nil && strings.TrimSpace(changed) == "" {
			c.writeLine("%s", c.view.Side.Dim("nothing was changed"))
			return before, nil
		}
		if err != nil {
			return before, err
		}
		arguments := json.RawMessage(strings.TrimSpace(changed))
		if err = checkArguments(q, arguments); err == nil {
			c.describeCall(q, arguments)
			return arguments, nil
		}
		c.writeLine("%s", c.view.Side.Yellow(term.Printable(err.Error())))
		again, err := c.askUser(ctx, "Change it again? [Y/n]")
		if err != nil && !errors.Is(err, io.EOF) {
			return before, err
		}
		if word := strings.ToLower(strings.TrimSpace(again)); err != nil || word == "n" || word == "no" {
			return before, nil
		}
		text = changed
	}
}

// checkArguments checks that arguments are a JSON object that matches the tool's schema.
func checkArguments(q agent.Question, arguments json.RawMessage) error {
	if err := rawjson.CheckAll(arguments); err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	if !rawjson.IsObject(arguments) {
		return errors.New(`the arguments must be an object, such as {"key":"value"}`)
	}
	return toolargs.Check(toolargs.NewSpec(q.Tool.InputSchema), arguments)
}

// editText lets the user edit text in $VISUAL or $EDITOR, or on one line if neither is set. It
// returns "" if the editor fails.
func (c *conversation) editText(ctx context.Context, text string) (string, error) {
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(editor) == 0 || c.term == nil {
		flat := text
		if compact, err := json.Marshal(json.RawMessage(text)); err == nil {
			flat = string(compact)
		}
		return c.readAnswer(ctx, term.Question{Prompt: c.view.Side.Bold("Arguments:") + " ", Prefill: flat, Answer: true, Fresh: true})
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
		c.writeLine("%s", c.view.Side.Yellow(fmt.Sprintf("%s: %v", editor[0], err)))
		return "", context.Cause(ctx)
	}
	changed, err := os.ReadFile(file.Name())
	return string(changed), err
}
