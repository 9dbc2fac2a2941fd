package streamable

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// session is the part of a legacy session that lives in this process. Replicas may hold parts of
// the same session: its id contains the fixed state, and the [SessionStore] the changeable one.
type session struct {
	server     *Server
	id         fingerprint // of the id that the client sends
	key        string      // names the session in the stores
	principal  string      // the id of the principal that opened it
	client     quota.Client
	opened     int64 // Unix time in seconds, as in the id
	edge       *serving.Session
	mintedHere bool // this process has made its id

	// All of these are guarded by mu.
	mu            sync.Mutex
	isRegistered  bool // requests can find it
	ended         bool
	lastUsed      time.Time
	record        sessionRecord            // as last loaded or saved
	applied       []string                 // the subscriptions of a record that this process has taken over
	refused       []string                 // URIs in applied that the handler has refused; sorted
	retries       uint64                   // counts the calls of retryRefused
	sessionStream *sessionStream           // nil until the first message or GET
	answerStreams map[string]*answerStream // the open answers that the client can resume, by name
}

// openedAt returns when the session was opened, in whole seconds.
func (ss *session) openedAt() time.Time { return time.Unix(ss.opened, 0) }

func (s *Server) newSession(key string, p mcp.Principal, c quota.Client) *session {
	now := time.Now()
	return &session{server: s, key: key, principal: p.ID, client: c, opened: now.Unix(), lastUsed: now}
}

// Owner implements [quota.Session].
func (ss *session) Owner() quota.Client { return ss.client }

// IdleSince implements [quota.Session].
func (ss *session) IdleSince() (last time.Time, isIdle bool) {
	if !ss.mu.TryLock() {
		return last, false
	}
	defer ss.mu.Unlock()
	return ss.lastUsed, ss.isRegistered && !ss.inUse()
}

// Evict implements [quota.Session].
func (ss *session) Evict(reason error) {
	if err := ss.server.sessions.removeSession(context.Background(), ss, reason); err != nil {
		ss.server.opts.Logger.Warn("the end of a session could not be stored", "err", err)
	}
}

// markRegistered notes that requests can find the session.
func (ss *session) markRegistered() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.isRegistered = true
}

// inUse reports whether the session has a call in flight or an open session stream. ss.mu is held.
func (ss *session) inUse() bool {
	return ss.sessionStream != nil && ss.sessionStream.isConnected() || ss.edge.Busy()
}

// ensureSessionStream returns the session stream. It is made when it is first needed, because many
// sessions never need it.
func (ss *session) ensureSessionStream() *sessionStream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.sessionStream == nil {
		ss.sessionStream = &sessionStream{legacyStream: legacyStream{session: ss, name: ss.key, ended: ss.ended}}
	}
	return ss.sessionStream
}

// currentSessionStream returns the session stream, or nil if it was not needed yet.
func (ss *session) currentSessionStream() *sessionStream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.sessionStream
}

// Write implements [serving.Writer] for messages that belong to no request.
func (ss *session) Write(frame []byte) error { return ss.ensureSessionStream().Write(frame) }

// markUsed notes that the session is in use. It saves that once a minute.
func (ss *session) markUsed(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.lastUsed = time.Now()
	if ss.lastUsed.Sub(ss.record.Used) < time.Minute {
		return nil
	}
	return ss.saveLocked(ctx, noteUse)
}

// needsSave reports whether the last use of the session was not saved for a minute.
func (ss *session) needsSave() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.lastUsed.Sub(ss.record.Used) >= time.Minute
}

// saveUse saves when the session was last used.
func (ss *session) saveUse(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.saveLocked(ctx, noteUse)
}

// saveSettings saves the log level, or the subscription to a resource, that a request of the
// client has set. It changes the newest record, because other requests may have reached
// other replicas meanwhile.
func (ss *session) saveSettings(ctx context.Context, msg jsonrpc.Message) error {
	level, own := ss.edge.LogLevel(), ss.edge.Subscriptions()
	isShared := !ss.server.hasPrivateStore()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if isShared {
		ss.applied = own // the next request subscribes to the others
	}
	return ss.saveLocked(ctx, func(r *sessionRecord) bool {
		before := *r
		if !isShared || r.LogLevel == "" || msg.Method == mcpwire.MethodSetLevel {
			r.LogLevel = level
		}
		if r.Subscriptions = own; isShared {
			r.Subscriptions = mergeSubscriptions(before.Subscriptions, own, msg)
		}
		return r.LogLevel != before.LogLevel || !slices.Equal(r.Subscriptions, before.Subscriptions)
	})
}

// saveLocked changes the record and saves it. change reports whether that is needed. For a session
// that this process has opened and whose store is not shared, it saves at most the end: as long as
// the session lives, nothing else loads its record. ss.mu is held.
func (ss *session) saveLocked(ctx context.Context, change func(*sessionRecord) bool) error {
	s, until, isSaved := ss.server, ss.openedAt().Add(ss.server.opts.Sessions.Life), false
	changeUsed := func(r *sessionRecord) bool {
		if isSaved = change(r); isSaved && ss.lastUsed.After(r.Used) {
			r.Used = ss.lastUsed
		}
		return isSaved
	}
	if !s.hasPrivateStore() {
		err := s.changeRecord(ctx, ss.key, until, changeUsed)
		if err == nil && isSaved { // the changes of other replicas are not applied here yet
			changeUsed(&ss.record)
		}
		return err
	}
	if !changeUsed(&ss.record) || ss.mintedHere && (!ss.record.Ended || !s.keepsEnds()) {
		return nil
	}
	return s.saveRecord(ctx, ss.key, ss.record, until)
}

// noteUse changes nothing in a record but the time of its last use.
func noteUse(*sessionRecord) bool { return true }

// applyRecord applies the settings that another replica has saved.
func (ss *session) applyRecord(ctx context.Context, r sessionRecord) {
	ss.mu.Lock()
	level := r.LogLevel != "" && r.LogLevel != ss.record.LogLevel
	last := ss.applied
	subscriptions := !slices.Equal(r.Subscriptions, last)
	ss.record = r
	ss.mu.Unlock()
	if level {
		ss.edge.SetLogLevel(r.LogLevel)
	}
	if subscriptions {
		ss.subscribe(ctx, last, r.Subscriptions)
	}
}

// isIdle reports whether the session was unused for longer than limit, or is older than life. An
// open session stream or a call in flight is a use.
func (ss *session) isIdle(limit, life time.Duration) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if time.Since(ss.openedAt()) > life {
		return true
	}
	if ss.sessionStream != nil {
		ss.sessionStream.stopUnusedRunner()
	}
	if ss.inUse() {
		ss.lastUsed = time.Now()
		return false
	}
	return time.Since(ss.lastUsed) > limit
}

// endEverywhere ends the session for all replicas. This one does not find it any more, even if
// saving its end fails.
func (ss *session) endEverywhere(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.ended, ss.record.Ended = true, true
	return ss.saveLocked(ctx, func(r *sessionRecord) bool { r.Ended = true; return true })
}

func (ss *session) hasEnded() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.ended
}

// endLocally ends the part of the session in this process. Calls in flight get err as their cause.
func (ss *session) endLocally(err error) {
	ss.mu.Lock()
	answers, st := ss.answerStreams, ss.sessionStream
	ss.answerStreams, ss.ended = nil, true
	ss.mu.Unlock()
	ss.edge.End(err)
	if st != nil {
		st.endWithSession()
	}
	for _, a := range answers {
		a.endWithSession()
	}
}

// addAnswerStream makes a stream available for GETs that resume it.
func (ss *session) addAnswerStream(a *answerStream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.ended {
		return
	}
	if ss.answerStreams == nil {
		ss.answerStreams = map[string]*answerStream{}
	}
	ss.answerStreams[a.name] = a
}

func (ss *session) removeAnswerStream(a *answerStream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.answerStreams, a.name)
}

// answerStream returns the open answer stream of a name, or nil.
func (ss *session) answerStream(name string) *answerStream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.answerStreams[name]
}

// The names of streams begin with the session's key. The key alone names the first connection of
// the session stream, and these marks follow it in the names of other streams.
const (
	answerStreamMark = "." // an answer stream
	extraStreamMark  = "~" // a further connection of the session stream
)

// newStreamName returns a name that no other stream has, of any replica.
func (ss *session) newStreamName(mark string) string {
	return ss.key + mark + ss.server.instance + strconv.FormatUint(ss.server.streamCount.Add(1), 36)
}

// ownsStream reports whether a name belongs to a stream of the session.
func (ss *session) ownsStream(name string) bool {
	return ss.namesSessionStream(name) || strings.HasPrefix(name, ss.key+answerStreamMark)
}

// namesSessionStream reports whether a name belongs to a connection of the session stream.
func (ss *session) namesSessionStream(name string) bool {
	return name == ss.key || strings.HasPrefix(name, ss.key+extraStreamMark)
}
