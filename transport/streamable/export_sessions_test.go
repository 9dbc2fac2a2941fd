package streamable

// Sessions returns how many legacy sessions are kept.
func (s *Server) Sessions() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.sessions)
}
