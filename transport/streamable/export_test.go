package streamable

import (
	"context"
	"errors"
)

// Forget ends all sessions, as a restart without a store would.
func (s *Server) Forget() {
	s.sessions.mu.Lock()
	all := s.sessions.sessions
	s.sessions.sessions = map[fingerprint]*session{}
	s.sessions.mu.Unlock()
	for _, ss := range all {
		_ = ss.endEverywhere(context.Background()) // the store is memory
		ss.endLocally(errors.New("forgotten"))
	}
}

// DefaultMaxBody is the default of Options.MaxBody.
const DefaultMaxBody = defaultMaxBody

// Sessions returns how many legacy sessions this process keeps.
func (s *Server) Sessions() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.sessions)
}
