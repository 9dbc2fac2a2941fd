// Package sessionlog stores the conversation of dowel chat or dowel run in its session while the
// conversation proceeds, and tells the running dowel which program continues it.
//
//	log := sessionlog.Log{Session: session.New(folder, header), Warn: f.Warn, Program: "dowel chat"}
//	setup.OnRequest = log.AddRequest
//	log.UseServers(sessionlog.Servers{Origin: runtime.Toolbox.Origin}, runtime.Agent.Messages())
//	log.BeginRun(input, runtime.Model)
//	for e, err := range runtime.Run(ctx, input...) {
//		log.Event(e)
//	}
//	log.EndRun(runtime.Agent.Messages())
package sessionlog

import (
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// Log stores a conversation in a session. Its zero value stores nothing. Only AddRequest is safe
// for concurrent use. After the first error it warns and stores nothing more.
type Log struct {
	Session *session.Session // nil: nothing is stored
	Warn    func(format string, args ...any)
	Program string // that continues the session, such as dowel chat
	// ModelKnown: the session names the current model.
	ModelKnown bool
	// DecidedAt says where the user has given the last approval, if it was not on the terminal.
	DecidedAt string
	// Failed is the first error, after which nothing is stored.
	Failed error

	requests  requestQueue     // to the model, which the session does not have yet
	continued *session.Session // for which noteProgram has decided
	servers   Servers
	open      []opentask.Task // of the conversation
}

// ID returns the ID of the session, or "".
func (l *Log) ID() string {
	if l.Session == nil {
		return ""
	}
	return l.Session.Header().ID
}

// BeginRun stores a message of the user, and the model if it has changed.
func (l *Log) BeginRun(content []mcp.Content, m modelregistry.Choice) {
	l.update(func(s *session.Session) error { return s.Message(agent.Message{Role: mcp.RoleUser, Content: content}) })
	l.noteProgram()
	l.noteModel(m)
}

// NoteMode stores which tools may run from now on.
func (l *Log) NoteMode(mode string) {
	l.update(func(s *session.Session) error { return s.Mode(mode) })
}

// Event stores an event of a run.
func (l *Log) Event(e agent.Event) {
	l.storeRequests()
	if e, ok := e.(agent.CallEnded); ok {
		l.addTask(e.Result)
	}
	l.update(func(s *session.Session) error {
		switch e := e.(type) {
		case agent.Delta:
			if e.Message != nil {
				return s.Message(*e.Message)
			}
		case agent.CallEnded:
			return s.Result(e.Result)
		case agent.Compacted:
			return s.Compacted(e.Before, e.After)
		case agent.CallStarted:
			return s.Started(e.Call.ID)
		case agent.Approval:
			if e.By == "user" || !e.Allowed {
				at := l.DecidedAt
				l.DecidedAt = ""
				return s.Decided(e, at)
			}
		}
		return nil
	})
}

// EndRun stores what the events of a run did not have. messages is the whole conversation.
func (l *Log) EndRun(messages []agent.Message) {
	l.storeRequests() // of a run that has failed
	l.update(func(s *session.Session) error { return s.Sync(messages) })
	l.listTasks(session.OpenTasks(messages))
}

// Write stores a whole conversation and its model in an empty session.
func Write(s *session.Session, messages []agent.Message, m modelregistry.Choice) error {
	if err := s.Sync(messages); err != nil {
		return err
	}
	return s.Note(session.EventModel, newModelNote(m))
}

// Close closes the session.
func (l *Log) Close() {
	if l.Session == nil {
		return
	}
	if l.servers.Private && len(l.open) > 0 {
		l.listTasks(nil) // they end with their servers
	}
	if err := l.Session.Close(); err != nil {
		l.Warn("%v", err)
	}
}

func (l *Log) update(do func(*session.Session) error) {
	if l.Session == nil {
		return
	}
	if err := do(l.Session); err != nil {
		l.Warn("%v", err)
		_ = l.Session.Close() // its error follows from the first one
		l.Session, l.Failed = nil, err
	}
}

// noteProgram stores that this program continues a session of dowel run, which is then kept.
func (l *Log) noteProgram() {
	if l.Session == nil || l.Session == l.continued {
		return
	}
	l.continued = l.Session
	if began := l.Session.Header().Program; began != "" && began != l.Program {
		l.update(func(s *session.Session) error { return s.Continued(l.Program) })
	}
}

// noteModel stores which model replies from now on, once for each change.
func (l *Log) noteModel(m modelregistry.Choice) {
	if !l.ModelKnown {
		l.ModelKnown = true
		l.update(func(s *session.Session) error { return s.Note(session.EventModel, newModelNote(m)) })
	}
}
