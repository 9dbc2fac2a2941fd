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
	server    *Server
	id        fingerprint // of what the client names it by
	key       string      // what the stores name it by
	principal string      // who opened it
	opened    time.Time
	own       bool // this process has minted its id
	edge      *serving.Session

	mu    sync.Mutex
	used  time.Time
	saved SessionRecord
	stand *lane            // of what belongs to no call; nil until there is any
	lanes map[string]*lane // of calls that a client may come back to, by name
	ended bool
}

func (s *Server) newSession(key string, p mcp.Principal) *session {
	now := time.Now()
	return &session{server: s, key: key, principal: p.ID, opened: now, used: now}
}

// standing returns the lane of what belongs to no call, which the client reads with GET. Many sessions never need one.
func (ss *session) standing() *lane {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.stand == nil {
		ss.stand = &lane{session: ss, name: ss.key, standing: true, over: ss.ended}
	}
	return ss.stand
}

// Write implements [serving.Writer] for what belongs to no call.
func (ss *session) Write(frame []byte) error { return ss.standing().Write(frame) }

// use marks the session as used, in the store once a minute.
func (ss *session) use(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.used = time.Now()
	if ss.used.Sub(ss.saved.Used) < time.Minute {
		return nil
	}
	return ss.save(ctx)
}

// due reports whether the session was used since the store was told.
func (ss *session) due() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.used.Sub(ss.saved.Used) >= time.Minute
}

// stored tells the store when the session was used.
func (ss *session) stored(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.save(ctx)
}

// changed stores what the client has set.
func (ss *session) changed(ctx context.Context) error {
	level, subscriptions := ss.edge.LogLevel(), ss.edge.Subscriptions()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if level == ss.saved.LogLevel && slices.Equal(subscriptions, ss.saved.Subscriptions) {
		return nil
	}
	ss.saved.LogLevel, ss.saved.Subscriptions = level, subscriptions
	return ss.save(ctx)
}

// save stores the record; ss.mu is held. Nobody asks for that of a session which this process has minted and no other process
// shares: it is in memory, or over.
func (ss *session) save(ctx context.Context) error {
	ss.saved.Used = ss.used
	if ss.own && ss.server.alone() {
		return nil
	}
	return ss.server.opts.Sessions.Save(ctx, ss.key, ss.saved, ss.opened.Add(ss.server.opts.SessionLife))
}

// adopt takes over what the client has set elsewhere.
func (ss *session) adopt(ctx context.Context, r SessionRecord) {
	ss.mu.Lock()
	level := r.LogLevel != "" && r.LogLevel != ss.saved.LogLevel
	subscriptions := !slices.Equal(r.Subscriptions, ss.saved.Subscriptions)
	ss.saved = r
	ss.mu.Unlock()
	if level {
		ss.edge.SetLogLevel(r.LogLevel)
	}
	if subscriptions {
		ss.edge.Subscribe(ctx, r.Subscriptions)
	}
}

// idle reports whether the session has not been used for so long, or is too old.
func (ss *session) idle(limit, life time.Duration) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if time.Since(ss.opened) > life {
		return true
	}
	if ss.stand != nil {
		ss.stand.lapse()
	}
	if ss.stand != nil && ss.stand.attached() || ss.edge.Busy() {
		ss.used = time.Now()
		return false
	}
	return time.Since(ss.used) > limit
}

// close ends the session for good, for all replicas. It is not found any more, whether its end could be stored or not.
func (ss *session) close(ctx context.Context) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.ended, ss.saved.Ended = true, true
	return ss.save(ctx)
}

func (ss *session) over() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.ended
}

// leave ends what this process has of the session.
func (ss *session) leave(why error) {
	ss.mu.Lock()
	lanes, stand := ss.lanes, ss.stand
	ss.lanes, ss.ended = nil, true
	ss.mu.Unlock()
	ss.edge.End(why)
	if stand != nil {
		stand.close()
	}
	for _, l := range lanes {
		l.close()
	}
}

// enter keeps a lane that the client may come back to.
func (ss *session) enter(l *lane) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.ended {
		return
	}
	if ss.lanes == nil {
		ss.lanes = map[string]*lane{}
	}
	ss.lanes[l.name] = l
}

func (ss *session) forget(l *lane) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.lanes, l.name)
}

// The kinds of streams that a session has beside its first standing one, which is named by its key.
const (
	answerStream = "." // the answer to a request
	secondStream = "~" // a further standing one
)

// newName returns a name for a stream that no other has, of any replica.
func (ss *session) newName(kind string) string {
	return ss.key + kind + ss.server.instance + strconv.FormatUint(ss.server.lanes.Add(1), 36)
}

// named reports whether a name is that of a stream of the session.
func (ss *session) named(name string) bool {
	return name == ss.key || strings.HasPrefix(name, ss.key+answerStream) || strings.HasPrefix(name, ss.key+secondStream)
}

func (ss *session) lane(name string) *lane {
	if name == ss.key || strings.HasPrefix(name, ss.key+secondStream) {
		return ss.standing()
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.lanes[name]
}
