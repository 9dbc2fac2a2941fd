package server

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// takeOver deals with a task that worked in a process that has ended: its function runs again in this
// process, or the task fails. It returns the newest state. Of several requests, one takes over.
func (s *Server) takeOver(ctx context.Context, req *mcp.Request, orphan *tasks.Record) (*tasks.Record, error) {
	rerun := s.mayRunAgain(orphan.Tool)
	r, taken, err := tasks.Update(ctx, s.tasks.store, orphan.ID, func(next *tasks.Record) bool {
		if next.Runner != orphan.Runner || next.Status != tasks.Working {
			return false // another request was faster
		}
		next.Runner, next.Updated = s.tasks.store.Runner(), time.Now()
		if !rerun {
			endWithError(next, mcp.Errorf(codeInternal, "the process that ran the task has ended, and its tool %s may have an effect twice: call it again if that is right", next.Tool))
		}
		return true
	})
	if err != nil || !taken {
		return r, err
	}
	s.announceTask(r)
	if rerun {
		s.resumeTask(ctx, req, r)
	}
	return r, nil
}

// mayRunAgain reports whether a second run of a tool is as good as one.
func (s *Server) mayRunAgain(tool string) bool {
	item, ok := s.catalog.lookupItem(KindTool, []byte(tool))
	if !ok {
		return false
	}
	t := item.entry.(*registeredTool)
	if t.task.Takeover {
		return true
	}
	a := t.annotated
	return a != nil && (a.ReadOnlyHint != nil && *a.ReadOnlyHint || a.IdempotentHint != nil && *a.IdempotentHint)
}
