// Package task implements dowel task: list, get, wait, answer and cancel. It acts on the tasks that
// dowel call --task has started and on the tasks that conversations wait for.
package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/tasklist"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel task. f must not be nil.
func NewCommand(f *factory.Factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "task",
		Short: "See, answer and end the tasks of servers",
		Long: `A server may make a task of a long call (extension io.modelcontextprotocol/tasks). dowel call --task prints the name of the task,
a number, and ends. The tasks that a conversation of dowel chat, dowel run or the console waits for have names, too. These commands
use the name until the server has forgotten the task. They reach the server through the running dowel. When that ends, its tasks
cannot be reached any more.`,
		Example: `  dowel call films.transcode file=a.mkv --task
  dowel task list
  dowel task wait 1`,
	}
	c.AddCommand(newListCommand(f), newGetCommand(f), newWaitCommand(f), newAnswerCommand(f), newCancelCommand(f))
	return c
}

// newTaskCommand adds flags and RunE to a command about one task, which its first word names.
func newTaskCommand(f *factory.Factory, c *cobra.Command, args cobra.PositionalArgs, do func(ctx context.Context, s *taskConnection, words []string) error) *cobra.Command {
	conn := connect.New(f)
	conn.AddCallFlags(c.Flags(), "the server's", "the server", "the server")
	c.Args = args
	c.ValidArgsFunction = cobra.NoFileCompletions
	c.RunE = func(cmd *cobra.Command, words []string) error {
		f.Parsed = true
		list, err := tasklist.Open(factory.StateDir())
		if err != nil {
			return err
		}
		entry, err := list.Find(words[0])
		if err != nil {
			return err
		}
		if entry.Private {
			return exit.ConnectError{Server: entry.Server, Err: fmt.Errorf("conversation %s has started the server for itself (--server, --url or a command), so nothing else reaches its tasks", strings.Join(entry.Conversations, ", "))}
		}
		return reach(cmd.Context(), conn, entry, func(c *client.Client) error {
			s := &taskConnection{Connection: conn, entry: entry, task: c.Resume(entry.ID)}
			err := do(cmd.Context(), s, words[1:])
			if isGone(err) {
				return errors.Join(err, list.Forget(entry.ID))
			}
			return err
		})
	}
	return c
}

// taskConnection is a connection for one task.
type taskConnection struct {
	*connect.Connection
	entry tasklist.Entry
	task  *client.Task
}

// reach connects to the server of a task in the running dowel, as the client that owns the task.
func reach(ctx context.Context, conn *connect.Connection, e tasklist.Entry, do func(*client.Client) error) error {
	t, err := conn.ByName(e.Server)
	if err != nil {
		return err
	}
	if !t.IsRunning() {
		return exit.ConnectError{Server: e.Server, Err: errors.New("no running dowel has this server, and the tasks of a server that is started for one command end with it: start dowel up")}
	}
	return conn.Do(ctx, t.AsClient(e.Client), do)
}

// isGone reports whether a server does not know a task any more.
func isGone(err error) bool {
	answered, ok := errors.AsType[*mcp.Error](err)
	return ok && answered.Code == jsonrpc.CodeInvalidParams
}

// stateLine is a task in the JSON output.
type stateLine struct {
	tasklist.Entry
	Status    string                      `json:"status"`
	Message   string                      `json:"message,omitzero"`
	Updated   time.Time                   `json:"updated,omitzero"`
	Questions map[string]mcp.InputRequest `json:"questions,omitempty"`
	Result    *mcp.CallToolResult         `json:"result,omitempty"`
	Error     string                      `json:"error,omitzero"`
}

// describeState returns the state of a task, or the reason why it cannot be read, as a line.
func describeState(e tasklist.Entry, s *client.TaskState, err error) stateLine {
	switch {
	case isGone(err):
		return stateLine{Entry: e, Status: "gone", Message: "the server has forgotten it"}
	case err != nil:
		return stateLine{Entry: e, Status: "unreachable", Message: err.Error()}
	}
	line := stateLine{Entry: e, Status: s.Status, Message: s.Message, Updated: s.Updated, Questions: s.Questions, Result: s.Result}
	if s.Err != nil {
		line.Error = s.Err.Error()
	}
	return line
}

// readQuestion returns the message and the form of an elicitation.
func readQuestion(q mcp.InputRequest) (p mcp.ElicitParams, ok bool) {
	ok = q.Method == mcp.MethodElicit && json.Unmarshal(q.Params, &p) == nil
	return p, ok
}
