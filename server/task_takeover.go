package server

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// isOrphan reports whether no process runs a task that works. The process that ran it may have
// ended. Or this process was about to run it, and did not, because the acknowledgement of the
// record was missing.
func (s *Server) isOrphan(r *tasks.Record) bool { return s.hasNoRun(r, s.tasks.store.IsGone) }

// hasNoRun is isOrphan with another function for the end of a process.
func (s *Server) hasNoRun(r *tasks.Record, isGone func(runner string) bool) bool {
	if r.Runner == s.tasks.store.Runner() {
		return s.tasks.hasLostRun(r.ID)
	}
	return isGone(r.Runner)
}

// takeOver deals with an orphan: its function runs again in this process, or the task fails. It
// returns the newest state. Of several requests, one takes over. The function has not run in the
// newest epoch if the record names this process.
func (s *Server) takeOver(ctx context.Context, req *mcp.Request, orphan *tasks.Record) (*tasks.Record, error) {
	rerun := orphan.Runner == s.tasks.store.Runner() || s.mayRunAgain(orphan.Tool)
	release := s.tasks.claim(orphan.ID)
	r, taken, err := tasks.Update(ctx, s.tasks.store, orphan.ID, func(next *tasks.Record) bool {
		if next.Epoch != orphan.Epoch || next.Runner != orphan.Runner || next.Status != tasks.Working {
			return false // another request was faster
		}
		next.Runner, next.Epoch, next.Updated = s.tasks.store.Runner(), next.Epoch+1, time.Now()
		if !rerun {
			endWithError(next, mcp.Errorf(codeInternal, "the process that ran the task has ended, and its tool %s may have an effect twice: call it again if that is right", next.Tool))
		}
		return true
	})
	defer func() {
		if release(err); err != nil {
			s.lookLater([]string{orphan.ID}) // clients that listen to it ask no more
		}
	}()
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
