package mcpwire

import (
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// DescribeTask returns the part of a task that each status has, as it is on the wire.
func DescribeTask(r *tasks.Record) *Task {
	ttl := r.TTL.Milliseconds()
	return &Task{
		TaskID: r.ID, Status: string(r.Status), StatusMessage: r.Message, TTLMs: &ttl, PollIntervalMs: r.Poll.Milliseconds(),
		CreatedAt: r.Created.UTC().Format(TaskTimeFormat), LastUpdatedAt: r.Updated.UTC().Format(TaskTimeFormat),
	}
}

// DescribeTaskFully returns a task with the members of its status.
func DescribeTaskFully(r *tasks.Record) *Task {
	t := DescribeTask(r)
	switch r.Status {
	case tasks.InputRequired:
		t.InputRequests = map[string]mcp.InputRequest{}
		for key, q := range r.Open {
			t.InputRequests[key] = mcp.InputRequest{Method: q.Method, Params: q.Params}
		}
	case tasks.Completed:
		t.Result = r.Result
	case tasks.Failed:
		t.Error = r.Error
	}
	return t
}
