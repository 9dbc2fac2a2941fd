package task

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/tasklist"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func newListCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	c := &cobra.Command{
		Use:   "list",
		Short: "List your tasks and their states",
		Long: `List the tasks that you have started with dowel call --task, and the ones that conversations of dowel chat, dowel run and the
console wait for, each with the state that its server reports now and with the IDs of its conversations: dowel chat --resume=ID
continues one. A task that its server has forgotten is shown once more as gone. The tasks of conversations that are not saved are
not listed.`,
		Example: "  dowel task list\n  dowel task list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return listTasks(cmd.Context(), conn)
		},
	}
	conn.AddCallFlags(c.Flags(), "the server's", "the server", "the server")
	return c
}

func listTasks(ctx context.Context, conn *connect.Connection) error {
	list, err := tasklist.Open(factory.StateDir())
	if err != nil {
		return err
	}
	entries, err := list.Read()
	if err != nil {
		return err
	}
	lines := readStates(ctx, conn, entries)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var gone []string
	for _, line := range lines {
		if line.Status == "gone" {
			gone = append(gone, line.ID)
		}
	}
	if err := writeStates(conn, lines); err != nil {
		return err
	}
	return list.Forget(gone...)
}

// readStates asks each server for the states of its tasks, over one connection for each client that
// owns some of them.
func readStates(ctx context.Context, conn *connect.Connection, entries []tasklist.Entry) []stateLine {
	lines := make([]stateLine, len(entries))
	groups := map[string][]int{}
	for i, e := range entries {
		if e.Private {
			lines[i] = describePrivate(e)
			continue
		}
		key := e.Server + "\x00" + e.Client
		groups[key] = append(groups[key], i)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		err := reach(ctx, conn, entries[groups[key][0]], func(c *client.Client) error {
			for _, i := range groups[key] {
				state, err := c.Resume(entries[i].ID).State(ctx)
				lines[i] = describeState(entries[i], state, err)
			}
			return nil
		})
		for _, i := range groups[key] {
			if err != nil && lines[i].Status == "" {
				lines[i] = describeState(entries[i], nil, err)
			}
		}
	}
	return lines
}

// describePrivate returns the state of a task at a server that the process of a conversation has
// started. The task ends with the process.
func describePrivate(e tasklist.Entry) stateLine {
	for _, id := range e.Conversations {
		if session.IsHeld(session.PathOf(factory.SessionsDir(), id)) {
			return stateLine{Entry: e, Status: "working", Message: "at a server of the conversation's own process"}
		}
	}
	return stateLine{Entry: e, Status: "gone", Message: "its server has ended with the process of the conversation"}
}

func writeStates(conn *connect.Connection, lines []stateLine) error {
	if conn.JSON {
		return conn.WriteValue(lines)
	}
	if len(lines) == 0 {
		conn.WriteNote("there are no tasks: dowel call --task starts them")
		return nil
	}
	rows := [][]string{{"TASK", "TOOL", "STATUS", "MESSAGE", "CONVERSATION"}}
	isWaited := false
	for _, line := range lines {
		isWaited = isWaited || len(line.Conversations) > 0
		rows = append(rows, []string{line.Name, line.Server + "." + line.Tool, line.Status, strings.Join(strings.Fields(line.Message), " "), strings.Join(line.Conversations, ", ")})
	}
	if !isWaited {
		for i := range rows {
			rows[i] = rows[i][:len(rows[i])-1]
		}
	}
	conn.WriteText(strings.Join(conn.Stdout.Table(rows), "\n") + "\n")
	return nil
}

func newGetCommand(f *factory.Factory) *cobra.Command {
	return newTaskCommand(f, &cobra.Command{
		Use:     "get TASK",
		Short:   "Show the state of a task, its questions and its result",
		Example: "  dowel task get 1\n  dowel task get 1 --json",
	}, cobra.ExactArgs(1), func(ctx context.Context, s *taskConnection, _ []string) error {
		state, err := s.task.State(ctx, s.CallOptions())
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteValue(describeState(s.entry, state, nil))
		}
		s.writeState(state)
		if state.Result != nil {
			return s.writeResult(state.Result)
		}
		return nil
	})
}

func (s *taskConnection) writeState(state *client.TaskState) {
	text := fmt.Sprintf("%s.%s: %s", s.entry.Server, s.entry.Tool, state.Status)
	if state.Message != "" {
		text += ": " + state.Message
	}
	s.WriteText(text + "\n")
	for _, key := range slices.Sorted(maps.Keys(state.Questions)) {
		q, ok := readQuestion(state.Questions[key])
		if !ok {
			s.WriteText("question " + key + ": " + state.Questions[key].Method + ", which only dowel task wait can answer\n")
			continue
		}
		s.WriteText("question " + key + ": " + q.Message + "\n")
		for _, line := range toolargs.Signature(toolargs.NewSpec(q.RequestedSchema)) {
			s.WriteText("  " + line + "\n")
		}
	}
}

func newWaitCommand(f *factory.Factory) *cobra.Command {
	return newTaskCommand(f, &cobra.Command{
		Use:   "wait TASK",
		Short: "Wait for the end of a task, and print its result",
		Long: `Wait for the end of a task, and print its result like dowel call. A terminal shows progress. Questions are put to you, or
answered by --answer. Ctrl-C ends the wait, not the task.`,
		Example: "  dowel task wait 1\n  dowel task wait 1 --answer confirm=true --json",
	}, cobra.ExactArgs(1), func(ctx context.Context, s *taskConnection, _ []string) error {
		result, err := s.task.Wait(ctx, s.CallOptions())
		s.Stderr.SetStatus("")
		if err != nil {
			return err
		}
		if s.JSON {
			if err := s.WriteValue(result); err != nil {
				return err
			}
			if !result.IsError {
				return nil
			}
		}
		return s.writeResult(result)
	})
}

// writeResult prints a result. A failure of the tool is an error.
func (s *taskConnection) writeResult(r *mcp.CallToolResult) error {
	if r.IsError {
		return exit.ToolError{Tool: s.entry.Tool, Text: formatContent(r.Content)}
	}
	if len(r.Content) == 0 && r.StructuredContent != nil {
		return display.WriteText(s.Factory, string(factory.IndentJSON(r.StructuredContent)), nil)
	}
	return display.WriteContent(s.Factory, r.Content, nil)
}

func formatContent(content []mcp.Content) string {
	var lines []string
	for _, c := range content {
		lines = append(lines, strings.TrimSpace(c.String()))
	}
	if len(lines) == 0 {
		return "the tool failed without a message"
	}
	return strings.Join(lines, "\n")
}
