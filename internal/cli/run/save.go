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

// saver stores the conversations of the task where dowel chat finds them. With --watch each run is
// a conversation of its own.
type saver struct {
	sessionlog.Log
	folder string // of the sessions; "" if nothing is stored
	header session.Header
	detach func() // ends the word to the running dowel; nil before the first session
}

// newSaver returns a saver with its first session.
func newSaver(f *factory.Factory, opts *Options, m modelregistry.Choice) (*saver, error) {
	s := &saver{Log: sessionlog.Log{Warn: f.Warn}}
	if opts.noSave || factory.SessionsDir() == "" {
		return s, nil
	}
	worked, err := connect.Folder(".")
	if err != nil {
		return nil, err
	}
	s.folder, s.header = factory.SessionsDir(), session.Header{Folder: worked, Model: m.Label()}
	s.Session = session.New(s.folder, s.header)
	return s, nil
}

// results returns the folder of long results beside the session, or other if nothing is stored.
func (s *saver) results(other string) string {
	if s.Session == nil {
		return other
	}
	return s.Session.Results()
}

// attach tells the running dowel that this process continues the session, until close or the next
// session.
func (s *saver) attach(ctx context.Context) {
	if s.Session == nil {
		return
	}
	ctx, s.detach = context.WithCancel(ctx)
	go sessionlog.Attach(ctx, "dowel run", s.ID())
}

// startConversation begins another conversation in a session of its own.
func (s *saver) startConversation(ctx context.Context, rt *agentcmd.Runtime, results string) {
	s.close()
	s.Session, s.ModelKnown = nil, false
	if s.folder != "" {
		s.Session = session.New(s.folder, s.header)
	}
	rt.Continue(s.Session, nil, s.results(results), rt.Mode)
	s.attach(ctx)
}

func (s *saver) close() {
	if s.detach != nil {
		s.detach()
		s.detach = nil
	}
	s.Close()
}
