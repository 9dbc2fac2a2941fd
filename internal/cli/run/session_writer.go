package run

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/session"
)

// sessionWriter stores the conversations of the task where dowel chat finds them. With --watch each
// run is a conversation of its own.
type sessionWriter struct {
	sessionlog.Log
	folder string // of the sessions; "" if nothing is stored
	header session.Header
	bound  session.Bound // of all saved runs
	detach func()        // tells the running dowel that the session is left; nil before the first session
}

// programName is the name of this program in sessions and at the running dowel.
const programName = "dowel run"

// Bounds of the saved runs.
const (
	defaultKeepRuns = 200
	maxRunBytes     = 1 << 30
)

// newSessionWriter returns a writer with its first session: resumed, or a new one if that is nil.
func newSessionWriter(f *factory.Factory, opts *Options, m modelregistry.Choice, resumed *session.Session) (*sessionWriter, error) {
	s := &sessionWriter{Log: sessionlog.Log{Warn: f.Warn, Program: programName}, bound: session.Bound{Count: opts.keepRuns, Bytes: maxRunBytes}}
	if opts.keepRuns == 0 {
		s.bound = session.Bound{}
	}
	if opts.noSave || factory.SessionsDir() == "" {
		return s, nil
	}
	worked, err := connect.Folder(".")
	if err != nil {
		return nil, err
	}
	s.folder = factory.SessionsDir()
	s.header = session.Header{Folder: worked, Model: m.Label(), Program: programName, Scripted: f.JSON || !f.Stdout.IsTerminal()}
	if s.Session = resumed; resumed == nil {
		s.Session = session.New(s.folder, s.header)
	}
	return s, nil
}

// results returns the folder of long results beside the session, or other if nothing is stored.
func (s *sessionWriter) results(other string) string {
	if s.Session == nil {
		return other
	}
	return s.Session.Results()
}

// attach tells the running dowel that this process continues the session, until endSession or the
// next session.
func (s *sessionWriter) attach(ctx context.Context) {
	if s.Session == nil {
		return
	}
	s.Session.Hold()
	ctx, s.detach = context.WithCancel(ctx)
	go sessionlog.Attach(ctx, programName, s.ID())
}

// startConversation begins another conversation in a session of its own.
func (s *sessionWriter) startConversation(ctx context.Context, rt *agentcmd.Runtime, results string) {
	s.endSession()
	s.Session, s.ModelKnown = nil, false
	if s.folder != "" {
		s.Session = session.New(s.folder, s.header)
	}
	rt.Continue(s.Session, nil, s.results(results), rt.Mode)
	s.attach(ctx)
}

// endSession ends the session, and removes the oldest runs beyond the bound.
func (s *sessionWriter) endSession() {
	if s.detach != nil {
		s.detach()
		s.detach = nil
	}
	s.Close()
	if s.folder == "" || s.Failed != nil || s.bound == (session.Bound{}) {
		return
	}
	if err := session.RemoveOldest(s.folder, programName, s.bound); err != nil {
		s.Warn("old runs cannot be removed: %v", err)
	}
}
