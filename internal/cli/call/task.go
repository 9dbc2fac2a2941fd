package call

import (
	"context"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/tasklist"
	"github.com/dowel-mcp/dowel/mcp"
)

// startTask calls a tool, and keeps its task for dowel task. If the server has made no task, it
// shows the result.
func startTask(ctx context.Context, conn *connect.Connection, t connect.Target, c *client.Client, tool *mcp.Tool, params mcp.CallToolParams, opts Options) error {
	list, err := tasklist.Open(factory.StateDir()) // before the call, which may change something
	if err != nil {
		return err
	}
	task, result, err := c.StartTool(ctx, params, conn.CallOptions())
	conn.Stderr.SetStatus("")
	if err != nil {
		return err
	}
	if task == nil {
		raw, err := mcp.Encode(result)
		if err != nil {
			return err
		}
		return showResult(conn, c, tool, raw, opts)
	}
	kept, err := list.Add(tasklist.Entry{Server: t.Name, Tool: tool.Name, ID: task.ID()})
	if err != nil {
		conn.Warn("the task runs, but its id %s cannot be kept: %v", task.ID(), err)
		return err
	}
	if conn.JSON {
		return conn.WriteValue(kept)
	}
	conn.WriteText(kept.Name + "\n")
	conn.Notice("the task runs at " + t.Name + ": dowel task get " + kept.Name + ", dowel task wait " + kept.Name)
	return nil
}

// refuseQuestion declines a question that a server asks before it makes a task.
func refuseQuestion(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
}
