package hub

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
)

// awaitedChange is a change that a failed server needs, such as the install of its program.
type awaitedChange struct {
	what  string // in words; empty if another attempt may succeed
	files string // the files that a start needs, as they were before the last attempt
	again bool   // the attempt before had failed for the same reason
}

// startFilesPoll is how often a waiting upstream looks for its program. A look is a few calls of
// stat.
const startFilesPoll = 3 * time.Second

// noteAwaited notes the change that a failure needs. The next attempt still follows soon: its start
// begins after the files were read, so a program that is installed meanwhile is not missed.
func (u *Upstream) noteAwaited(ctx context.Context, err error, d *doctor.Diagnosis) {
	files := ""
	if d.Awaits != "" {
		files = doctor.DescribeStartFiles(ctx, err, u.doctorServer())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if d.Awaits != "" && d.Awaits == u.awaited.what {
		u.awaited.again = true // with the files from before this attempt
		return
	}
	u.awaited = awaitedChange{what: d.Awaits, files: files}
}

// pollStartFiles returns a channel that gets a value when the files have changed that an upstream
// waits for. The caller calls stop.
func (u *Upstream) pollStartFiles(ctx context.Context) (changed <-chan struct{}, stop func()) {
	u.mu.Lock()
	err, old, waits := u.state.Err, u.awaited.files, u.waitsForChange() && u.awaited.again
	u.mu.Unlock()
	if !waits || err == nil || old == "" {
		return nil, func() {}
	}
	found, ended := make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	server := u.doctorServer()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(startFilesPoll)
		defer ticker.Stop()
		for {
			if files := doctor.DescribeStartFiles(ctx, err, server); files != old && ctx.Err() == nil {
				u.mu.Lock()
				u.awaited.files = files
				u.mu.Unlock()
				found <- struct{}{}
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return found, func() { cancel(); <-ended }
}

// waitsForChange reports whether the upstream has failed and no further attempt is planned. u.mu is
// held.
func (u *Upstream) waitsForChange() bool {
	switch u.state.Status {
	case Failed, NeedsAuthorization, NeedsLogin:
		return u.state.Next.IsZero() && u.state.LoginURL == ""
	}
	return false
}
