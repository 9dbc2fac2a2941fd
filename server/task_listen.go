package server

import (
	"context"
	"slices"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxListenTasks bounds the tasks that one subscription follows. The acknowledgement leaves out the
// others.
const maxListenTasks = 256

// acceptTasks replaces the ids of tasks in a filter by the ids of the principal's own tasks, and
// returns them.
func (s *Server) acceptTasks(ctx context.Context, req *mcp.Request, f *mcp.SubscriptionFilter) (accepted []string, err error) {
	raw, asked := f.Extensions[mcpwire.ListenTasks]
	if !asked || mcpwire.DefinesTasks(s.opts.Extensions) {
		return nil, nil
	}
	if !s.offersTasks(req) {
		delete(f.Extensions, mcpwire.ListenTasks)
		return nil, nil
	}
	if err := checkTasksDeclared(req); err != nil {
		return nil, err
	}
	var wanted []string
	if err := mcp.Decode(raw, &wanted); err != nil {
		return nil, mcp.InvalidParams("notifications.%s must be an array of strings", mcpwire.ListenTasks)
	}
	accepted = []string{}
	for _, id := range wanted[:min(len(wanted), maxListenTasks)] {
		if _, err := s.findTask(ctx, req, id); err == nil && !slices.Contains(accepted, id) {
			accepted = append(accepted, id)
		}
	}
	f.Extensions[mcpwire.ListenTasks], err = mcp.Encode(accepted)
	return accepted, err
}

// noteTasks sends the state of each task as the first change, unless a later one was announced
// meanwhile. A task may have changed before the subscription began.
func (s *Server) noteTasks(ctx context.Context, l *listener, ids []string) {
	for _, id := range ids {
		r, err := s.tasks.store.Load(ctx, id)
		if err != nil {
			continue // it has expired
		}
		if change, err := taskChange(r); err == nil {
			s.taskLooks.announce(r, func() { l.noteChange(change) })
		}
	}
}

// taskChange returns the notification of a task's state.
func taskChange(r *tasks.Record) (mcp.Notification, error) {
	params, err := mcp.Encode(mcpwire.DescribeTaskFully(r))
	return mcp.Notification{Method: mcpwire.NotificationTask, Params: params}, err
}

// announceTask notifies the clients that listen to a task, here and at other replicas.
func (s *Server) announceTask(r *tasks.Record) {
	s.replicas.noteTask(r.ID)
	s.announceTaskHere(r)
}

// announceTaskHere notifies the clients of this replica that listen to a task.
func (s *Server) announceTaskHere(r *tasks.Record) {
	if s.subscriptions.listenerOfTask(r.ID) == nil {
		return
	}
	change, err := taskChange(r)
	if err != nil {
		s.opts.Logger.Error("a task cannot be encoded", "err", err)
		return
	}
	s.taskLooks.announce(r, func() { s.subscriptions.notifyTask(r.ID, change) })
}
