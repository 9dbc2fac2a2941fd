package streamable

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// sessionRegistry holds the legacy sessions of this process, and ends those that are not used.
type sessionRegistry struct {
	server *Server
	sealer *mcp.Sealer

	mu       sync.Mutex
	sessions map[fingerprint]*session
	seeds    [2]maphash.Seed
	timer    *time.Timer // sweeps; nil where there is nothing to
	closed   bool
}

const sweepEvery = time.Minute

var (
	errUnknownSession  = errors.New("there is no such session, or it has ended: initialize again")
	errTooManySessions = errors.New("there are too many sessions")
)

func (g *sessionRegistry) initRegistry(s *Server) {
	g.server, g.sealer, g.sessions = s, s.opts.Keys.For("session"), map[fingerprint]*session{}
	g.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
}

// fingerprint stands for a session id, which is long: it is found by 128 bits that nobody outside can predict.
type fingerprint [2]uint64

func (g *sessionRegistry) fingerprintOf(id string) fingerprint {
	return fingerprint{maphash.String(g.seeds[0], id), maphash.String(g.seeds[1], id)}
}

// hasRoom reports whether one more session may be opened.
func (g *sessionRegistry) hasRoom() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions) < g.server.opts.MaxSessions && !g.closed
}

// addSession enters a session that was opened or rebuilt. Where it is there already, that one is returned and the other ended.
func (g *sessionRegistry) addSession(ss *session) (*session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if there := g.sessions[ss.id]; there != nil {
		ss.edge.End(errUnknownSession)
		return there, nil
	}
	if len(g.sessions) >= g.server.opts.MaxSessions || g.closed {
		ss.edge.End(errTooManySessions)
		return nil, errTooManySessions
	}
	g.sessions[ss.id] = ss
	if g.timer == nil {
		g.timer = time.AfterFunc(min(sweepEvery, g.server.opts.SessionIdle), g.sweepIdle)
	}
	return ss, nil
}

// findSession returns the session that an id stands for, from memory or rebuilt.
func (g *sessionRegistry) findSession(ctx context.Context, id string, p mcp.Principal) (*session, error) {
	print := g.fingerprintOf(id)
	g.mu.Lock()
	ss := g.sessions[print]
	g.mu.Unlock()
	if ss == nil || ss.principal != p.ID || time.Since(ss.opened) > g.server.opts.SessionLife {
		return g.rebuildSession(ctx, id, print, p)
	}
	if ss.hasEnded() {
		return nil, errUnknownSession
	}
	if err := g.syncWithStore(ctx, ss); err != nil {
		return nil, err
	}
	return ss, ss.markUsed(ctx)
}

// syncWithStore asks a store that replicas may share what has become of a session.
func (g *sessionRegistry) syncWithStore(ctx context.Context, ss *session) error {
	if g.server.hasPrivateStore() {
		return nil
	}
	record, err := g.server.opts.Sessions.Load(ctx, ss.key)
	if err == nil && record.Ended {
		g.dropSession(ss, errUnknownSession)
		err = errUnknownSession
	}
	if err == nil {
		ss.applyRecord(ctx, record)
	}
	return err
}

// hasPrivateStore reports whether no other process knows of what changes in the life of a session.
func (s *Server) hasPrivateStore() bool {
	_, own := s.opts.Sessions.(*memorySessions)
	return own
}

// rebuildSession makes a session of its id, and of what the store has of it.
func (g *sessionRegistry) rebuildSession(ctx context.Context, id string, print fingerprint, p mcp.Principal) (*session, error) {
	t, ok := openSessionToken(id, g.sealer, p)
	if !ok || time.Since(t.openedAt()) > g.server.opts.SessionLife || t.Server == g.server.instance && g.server.hasPrivateStore() {
		return nil, errUnknownSession
	}
	record, err := g.server.opts.Sessions.Load(ctx, t.Key)
	switch {
	case err != nil:
		return nil, err
	case record.Ended, !record.Used.IsZero() && time.Since(record.Used) > g.server.opts.SessionIdle+sweepEvery:
		return nil, errUnknownSession
	}
	ss := g.server.newSession(t.Key, p)
	ss.id, ss.opened = print, t.openedAt()
	ss.edge = g.server.edge.NewSession(t.sessionState(), p, ss)
	ss.applyRecord(ctx, record)
	if ss, err = g.addSession(ss); err != nil {
		return nil, err
	}
	return ss, ss.markUsed(ctx)
}

// removeSession ends a session, for all replicas: first it is found no more, and then it is gone here.
func (g *sessionRegistry) removeSession(ctx context.Context, ss *session, why error) error {
	err := ss.endEverywhere(ctx)
	g.dropSession(ss, why)
	return err
}

// dropSession ends what this process has of a session.
func (g *sessionRegistry) dropSession(ss *session, why error) {
	g.mu.Lock()
	delete(g.sessions, ss.id)
	g.mu.Unlock()
	ss.endLocally(why)
}

var errIdle = errors.New("the session was not used for a while")

// sweepIdle ends the sessions that were not used. Which they are is found out without the lock: a session may be busy storing.
// Another replica may go on with one that is only idle here; the store says when it was used.
func (g *sessionRegistry) sweepIdle() {
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.sessions))
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), sweepEvery)
	defer cancel()
	for _, ss := range all {
		idle := ss.isIdle(g.server.opts.SessionIdle, g.server.opts.SessionLife)
		if idle {
			g.dropSession(ss, errIdle)
		}
		if err := g.saveLastUse(ctx, ss, idle); err != nil && !errors.Is(err, errUnknownSession) {
			g.server.opts.Logger.Warn("the last use of a session could not be stored", "err", err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = nil
	if len(g.sessions) > 0 && !g.closed {
		g.timer = time.AfterFunc(min(sweepEvery, g.server.opts.SessionIdle), g.sweepIdle)
	}
}

// saveLastUse stores when a session was used that does not say so by requests, since it has a stream open; or that it is over.
func (g *sessionRegistry) saveLastUse(ctx context.Context, ss *session, idle bool) error {
	switch {
	case idle && g.server.hasPrivateStore():
		return ss.endEverywhere(ctx) // nobody else goes on with it
	case idle || !ss.needsSave():
		return nil
	}
	if err := g.syncWithStore(ctx, ss); err != nil {
		return err
	}
	return ss.saveUse(ctx)
}

// forEach calls do for the sessions in memory.
func (g *sessionRegistry) forEach(do func(*session)) {
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.sessions))
	g.mu.Unlock()
	for _, ss := range all {
		do(ss)
	}
}

// closeAll ends the sessions of this process, which other replicas may go on with, and waits for that no longer than ctx lasts.
func (g *sessionRegistry) closeAll(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
	all := g.sessions
	g.sessions = map[fingerprint]*session{}
	g.mu.Unlock()
	for _, ss := range all {
		ss.endLocally(serving.Shutdown())
	}
	var ending sync.WaitGroup
	for _, ss := range all {
		ending.Go(func() { ss.edge.Wait() })
	}
	done := make(chan struct{})
	go func() { defer close(done); ending.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
