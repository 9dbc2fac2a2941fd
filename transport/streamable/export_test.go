package streamable

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/shrinkmap"
)

// Forget ends all sessions, as a restart without a store would.
func (s *Server) Forget() {
	s.sessions.mu.Lock()
	all := slices.Collect(s.sessions.sessions.Values())
	s.sessions.sessions = shrinkmap.Map[fingerprint, *session]{}
	s.sessions.mu.Unlock()
	for _, ss := range all {
		_ = ss.endEverywhere(context.Background()) // the store is memory
		ss.endLocally(errors.New("forgotten"))
	}
}

// DefaultMaxBody is the default of Options.MaxBody.
const DefaultMaxBody = defaultMaxBody

// SweepSessions checks all sessions as the sweep does, and ends those that were idle for an hour.
func (s *Server) SweepSessions() { s.sessions.endIdleSessions(time.Hour) }

// MaxSend bounds a send to the client while another goroutine waits for the stream.
const MaxSend = maxSend

// HandoverOverlap is how long two subscriptions of one stream run during a handover.
const HandoverOverlap = handoverOverlap

// Sessions returns how many legacy sessions this process keeps.
func (s *Server) Sessions() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return s.sessions.sessions.Len()
}

// EndIdleSessions ends the sessions that are not in use at this moment. The sweep ends a session
// only after Options.Sessions.Idle.
func (s *Server) EndIdleSessions() { s.sessions.endIdleSessions(0) }

// SetCarrierWait replaces defaultCarrierWait. Call it before the first stream is resumed.
func (s *Server) SetCarrierWait(d time.Duration) { s.carrierWait = d }

// SetAnswerGrace replaces defaultAnswerGrace. Call it before Shutdown.
func (s *Server) SetAnswerGrace(d time.Duration) { s.answerGrace = d }

// AwaitedCarriers returns how many session streams wait for the replica that has carried them.
func (s *Server) AwaitedCarriers() (n int) {
	s.sessions.forEach(func(ss *session) {
		st := ss.ensureSessionStream()
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.waiting != nil {
			n++
		}
	})
	return n
}

// Carries returns how many session streams have a subscription in this process.
func (s *Server) Carries() (n int) {
	s.sessions.forEach(func(ss *session) {
		if _, hasRunner := ss.ensureSessionStream().countJoins(); hasRunner {
			n++
		}
	})
	return n
}

// SessionConns returns how many GET connections the session streams have, with those on standby.
func (s *Server) SessionConns() (n int) {
	s.sessions.forEach(func(ss *session) {
		st := ss.ensureSessionStream()
		st.mu.Lock()
		defer st.mu.Unlock()
		n += len(st.standby)
		if st.conn != nil {
			n++
		}
	})
	return n
}
