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
