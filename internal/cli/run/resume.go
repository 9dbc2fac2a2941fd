package run

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/session"
)

// latestRun is the value of --resume without an ID.
const latestRun = "latest"

// openResumed reads the conversation of --resume, and selects its model unless flags name one. The
// session is nil without the flag.
func (opts *Options) openResumed(ctx context.Context, f *factory.Factory) (*session.Session, []agent.Message, error) {
	if opts.resume == "" {
		return nil, nil, nil
	}
	if len(opts.watch) > 0 {
		return nil, nil, exit.Usagef("--resume continues one conversation, and --watch begins one at each change: use one of them")
	}
	found, err := opts.findResumed()
	if err != nil {
		return nil, nil, err
	}
	if !opts.noSave {
		if err := factory.RunningDaemon().CheckIdle(ctx, found.ID); err != nil {
			return nil, nil, err
		}
	}
	s, held, err := session.Load(found.Path)
	if err != nil {
		return nil, nil, err
	}
	if held.Damaged > 0 {
		f.Warn("%d unreadable lines of %s are left out", held.Damaged, found.Path)
	}
	return s, held.Messages, sessionlog.RestoreModel(held.Events, &opts.ModelFlags)
}

// findResumed returns the session of --resume: without an ID the last run of this folder that no
// other process continues.
func (opts *Options) findResumed() (session.Summary, error) {
	if opts.resume != latestRun {
		s, err := session.Find(factory.SessionsDir(), opts.resume)
		switch {
		case err != nil:
			return s, exit.UsageError{Err: err, See: "dowel chat --sessions"}
		case !opts.noSave && session.IsHeld(s.Path):
			return s, exit.Usagef("%s is open in another dowel: wait for its end, or continue a copy that is not saved with --no-save", s.ID)
		}
		return s, nil
	}
	folder, err := connect.Folder(".")
	if err != nil {
		return session.Summary{}, err
	}
	s, ok, err := session.Latest(factory.SessionsDir(), folder, func(s *session.Summary) bool {
		return s.Program == programName && !session.IsHeld(s.Path)
	})
	if err == nil && !ok {
		err = exit.UsageError{Err: fmt.Errorf("no saved run has ended in %s: --resume=ID continues another conversation", folder), See: "dowel chat --sessions"}
	}
	return s, err
}
