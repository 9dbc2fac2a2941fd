package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
)

// editArguments lets the user edit the arguments of a call until they match the tool's schema, and
// shows the edited call. It returns before, the result of an earlier edit, if the user changes
// nothing; nil means that the call's own arguments apply.
func (a *Asker) editArguments(ctx context.Context, q agent.Question, before json.RawMessage) (json.RawMessage, error) {
	current := q.Call.Input
	if before != nil {
		current = before
	}
	text := string(factory.IndentJSON(current))
	for {
		changed, err := a.EditText(ctx, text)
		if errors.Is(err, io.EOF) || err == nil && strings.TrimSpace(changed) == "" {
			a.writeLine("%s", a.Out.Dim("nothing was changed"))
			return before, nil
		}
		if err != nil {
			return before, err
		}
		arguments := json.RawMessage(strings.TrimSpace(changed))
		if err = checkArguments(q, arguments); err == nil {
			a.describeCall(q, arguments)
			return arguments, nil
		}
		a.writeLine("%s", a.Out.Yellow(term.Printable(err.Error())))
		again, err := a.Ask(ctx, "Change it again? [Y/n]")
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
