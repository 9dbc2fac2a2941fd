package task

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func newAnswerCommand(f *factory.Factory) *cobra.Command {
	var question string
	var declines bool
	c := newTaskCommand(f, &cobra.Command{
		Use:   "answer TASK [KEY=VALUE]…",
		Short: "Answer a question of a task",
		Long: `Answer a question of a task, which dowel task get shows. The question's form says how to read each VALUE. If several
questions are open, --question says which one is meant. dowel task wait asks them one after the other instead.`,
		Example: "  dowel task answer 1 confirm=true\n  dowel task answer 1 --decline",
	}, cobra.MinimumNArgs(1), func(ctx context.Context, s *taskConnection, words []string) error {
		return s.answerQuestion(ctx, question, declines, words)
	})
	c.Flags().StringVar(&question, "question", "", "the `key` of the question")
	c.Flags().BoolVar(&declines, "decline", false, "decline to answer")
	return c
}

func (s *taskConnection) answerQuestion(ctx context.Context, key string, declines bool, words []string) error {
	if declines && len(words) > 0 {
		return exit.Usagef("--decline takes no values")
	}
	given, err := toolargs.ParseArguments(words)
	if err != nil {
		return err
	}
	state, err := s.task.State(ctx, s.CallOptions())
	if err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(state.Questions))
	switch {
	case len(keys) == 0:
		return exit.Usagef("the task is %s and has no open question", state.Status)
	case key == "" && len(keys) == 1:
		key = keys[0]
	case key == "":
		return exit.Usagef("%d questions are open: want --question with %s", len(keys), strings.Join(keys, " or "))
	case !slices.Contains(keys, key):
		return exit.Usagef("no question %s is open: want --question with %s", key, strings.Join(keys, " or "))
	}
	answer := mcp.ElicitResult{Action: mcp.ElicitDecline}
	if !declines {
		if answer, err = readAnswer(state.Questions[key], given); err != nil {
			return exit.WithHelp(err, "dowel task get "+s.entry.Name)
		}
	}
	raw, err := mcp.Encode(&answer)
	if err != nil {
		return err
	}
	return s.task.Answer(ctx, map[string]json.RawMessage{key: raw}, s.CallOptions())
}

// readAnswer returns the answer to a question, by the question's form.
func readAnswer(q mcp.InputRequest, given []toolargs.Argument) (mcp.ElicitResult, error) {
	p, ok := readQuestion(q)
	if !ok || p.Mode == mcp.ElicitURL {
		return mcp.ElicitResult{}, exit.Usagef("the question has no form: dowel task wait answers it")
	}
	content, err := toolargs.Complete(toolargs.NewSpec(p.RequestedSchema), nil, given)
	return mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, err
}

func newCancelCommand(f *factory.Factory) *cobra.Command {
	return newTaskCommand(f, &cobra.Command{
		Use:     "cancel TASK",
		Short:   "Tell the server that a task is no longer needed",
		Long:    `Tell the server that a task is no longer needed. The server may end it later, or complete it all the same.`,
		Example: "  dowel task cancel 1",
	}, cobra.ExactArgs(1), func(ctx context.Context, s *taskConnection, _ []string) error {
		return s.task.Cancel(ctx, s.CallOptions())
	})
}
