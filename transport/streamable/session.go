package streamable

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// session is a legacy session in this process.
type session struct {
	server     *Server
	id         fingerprint // of what the client names it by
	key        string      // what the stores name it by
	principal  string      // who opened it
	opened     time.Time
	mintedHere bool // this process has minted its id
	edge       *serving.Session

	mu            sync.Mutex
	lastUsed      time.Time
	record        SessionRecord
	sessionStream *legacyStream            // of what belongs to no call; nil until there is any
	answerStreams map[string]*legacyStream // of calls that a client may come back to, by name
	ended         bool
}

func (s *Server) newSession(key string, p mcp.Principal) *session {
	now := time.Now()
	return &session{server: s, key: key, principal: p.ID, opened: now, lastUsed: now}
}

// ensureSessionStream returns the lane of what belongs to no call, which the client reads with GET. Many sessions never need one.
func (ss *session) ensureSessionStream() *legacyStream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.sessionStream == nil {
		ss.sessionStream = &legacyStream{session: ss, name: ss.key, isSessionStream: true, ended: ss.ended}
	}
	return ss.sessionStream
}

// Write implements [serving.Writer] for what belongs to no call.
func (ss *session) Write(frame []byte) error { return ss.ensureSessionStream().Write(frame) }

// markUsed marks the session as used, in the store once a minute.
func (ss *session) markUsed(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.lastUsed = time.Now()
	if ss.lastUsed.Sub(ss.record.Used) < time.Minute {
		return nil
	}
	return ss.saveLocked(ctx)
}

// needsSave reports whether the session was used since the store was told.
func (ss *session) needsSave() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.lastUsed.Sub(ss.record.Used) >= time.Minute
}

// saveUse tells the store when the session was used.
func (ss *session) saveUse(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.saveLocked(ctx)
}

// saveSettings stores what the client has set.
func (ss *session) saveSettings(ctx context.Context) error {
	level, subscriptions := ss.edge.LogLevel(), ss.edge.Subscriptions()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if level == ss.record.LogLevel && slices.Equal(subscriptions, ss.record.Subscriptions) {
		return nil
	}
	ss.record.LogLevel, ss.record.Subscriptions = level, subscriptions
	return ss.saveLocked(ctx)
}

// saveLocked stores the record; ss.mu is held. Nobody asks for that of a session which this process has minted and no other process
// shares: it is in memory, or over.
func (ss *session) saveLocked(ctx context.Context) error {
	ss.record.Used = ss.lastUsed
	if ss.mintedHere && ss.server.hasPrivateStore() {
		return nil
	}
	return ss.server.opts.Sessions.Save(ctx, ss.key, ss.record, ss.opened.Add(ss.server.opts.SessionLife))
}

// applyRecord takes over what the client has set elsewhere.
func (ss *session) applyRecord(ctx context.Context, r SessionRecord) {
	ss.mu.Lock()
	level := r.LogLevel != "" && r.LogLevel != ss.record.LogLevel
	subscriptions := !slices.Equal(r.Subscriptions, ss.record.Subscriptions)
	ss.record = r
	ss.mu.Unlock()
	if level {
		ss.edge.SetLogLevel(r.LogLevel)
	}
	if subscriptions {
		ss.edge.Subscribe(ctx, r.Subscriptions)
	}
}

// isIdle reports whether the session has not been used for so long, or is too old.
func (ss *session) isIdle(limit, life time.Duration) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if time.Since(ss.opened) > life {
		return true
	}
	if ss.sessionStream != nil {
		ss.sessionStream.stopUnusedRunner()
	}
	if ss.sessionStream != nil && ss.sessionStream.isConnected() || ss.edge.Busy() {
		ss.lastUsed = time.Now()
		return false
	}
	return time.Since(ss.lastUsed) > limit
}

// endEverywhere ends the session for good, for all replicas. It is not found any more, whether its end could be stored or not.
func (ss *session) endEverywhere(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.ended, ss.record.Ended = true, true
	return ss.saveLocked(ctx)
}

func (ss *session) hasEnded() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.ended
}

// endLocally ends what this process has of the session.
func (ss *session) endLocally(why error) {
	ss.mu.Lock()
	lanes, stand := ss.answerStreams, ss.sessionStream
	ss.answerStreams, ss.ended = nil, true
	ss.mu.Unlock()
	ss.edge.End(why)
	if stand != nil {
		stand.closeStream()
	}
	for _, l := range lanes {
		l.closeStream()
	}
}

// addAnswerStream keeps a lane that the client may come back to.
func (ss *session) addAnswerStream(l *legacyStream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.ended {
		return
	}
	if ss.answerStreams == nil {
		ss.answerStreams = map[string]*legacyStream{}
	}
	ss.answerStreams[l.name] = l
}

func (ss *session) removeAnswerStream(l *legacyStream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.answerStreams, l.name)
}

// The kinds of streams that a session has beside its first standing one, which is named by its key.
const (
	answerStreamMark = "." // the answer to a request
	extraStreamMark  = "~" // a further standing one
)

// newStreamName returns a name for a stream that no other has, of any replica.
func (ss *session) newStreamName(kind string) string {
	return ss.key + kind + ss.server.instance + strconv.FormatUint(ss.server.streamCount.Add(1), 36)
}

// ownsStream reports whether a name is that of a stream of the session.
func (ss *session) ownsStream(name string) bool {
	return name == ss.key || strings.HasPrefix(name, ss.key+answerStreamMark) || strings.HasPrefix(name, ss.key+extraStreamMark)
}

func (ss *session) findStream(name string) *legacyStream {
	if name == ss.key || strings.HasPrefix(name, ss.key+extraStreamMark) {
		return ss.ensureSessionStream()
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.answerStreams[name]
}
