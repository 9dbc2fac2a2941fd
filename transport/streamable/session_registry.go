package streamable

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/shrinkmap"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// sessionRegistry holds the legacy sessions of this process and ends unused ones.
type sessionRegistry struct {
	server *Server
	sealer *mcp.Sealer

	mu       sync.Mutex
	sessions shrinkmap.Map[fingerprint, *session]
	seeds    [2]maphash.Seed
	timer    *time.Timer // the next sweep; nil if there are no sessions
	closed   bool
}

const sweepEvery = time.Minute

var errUnknownSession = errors.New("the session is unknown or has ended: initialize again")

func (g *sessionRegistry) initRegistry(s *Server) {
	g.server, g.sealer = s, s.opts.Sessions.Keys.For("session")
	g.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
}

// fingerprint is a short key for a session id, which is long. It has 128 bits that clients cannot
// predict.
type fingerprint [2]uint64

func (g *sessionRegistry) fingerprintOf(id string) fingerprint {
	return fingerprint{maphash.String(g.seeds[0], id), maphash.String(g.seeds[1], id)}
}

// addSession adds a session that was opened or rebuilt, and may evict another one. If a concurrent
// request has added it already, that one is returned and ss is ended.
func (g *sessionRegistry) addSession(ss *session) (*session, error) {
	if err := g.server.opts.Quota.OpenSession(ss); err != nil {
		ss.edge.End(err)
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if existing := g.sessions.Get(ss.id); existing != nil || g.closed {
		g.server.opts.Quota.CloseSession(ss)
		ss.edge.End(errUnknownSession)
		if existing == nil {
			return nil, httpwire.ErrShutdown
		}
		return existing, nil
	}
	g.sessions.Put(ss.id, ss)
	ss.markRegistered()
	if g.timer == nil {
		g.timer = time.AfterFunc(min(sweepEvery, g.server.opts.Sessions.Idle), g.sweepIdle)
	}
	return ss, nil
}

// findSession returns the session of an id, from memory or rebuilt from the id and the store.
func (g *sessionRegistry) findSession(r *http.Request, id string, p mcp.Principal) (*session, error) {
	ctx, print := r.Context(), g.fingerprintOf(id)
	g.mu.Lock()
	ss := g.sessions.Get(print)
	g.mu.Unlock()
	if ss == nil || ss.principal != p.ID || time.Since(ss.openedAt()) > g.server.opts.Sessions.Life {
		return g.rebuildSession(r, id, print, p)
	}
	if ss.hasEnded() {
		return nil, errUnknownSession
	}
	if err := g.syncWithStore(ctx, ss); err != nil {
		return nil, err
	}
	return ss, ss.markUsed(ctx)
}

// syncWithStore loads the changes that other replicas have made to a session, if they share the
// store.
func (g *sessionRegistry) syncWithStore(ctx context.Context, ss *session) error {
	if g.server.hasPrivateStore() {
		return nil
	}
	record, err := g.server.loadRecord(ctx, ss.key)
	if err == nil && record.Ended {
		g.dropSession(ss, errUnknownSession)
		err = errUnknownSession
	}
	if err == nil {
		ss.applyRecord(ctx, record)
	}
	return err
}

// rebuildSession makes a session from its id and the store's record of it.
func (g *sessionRegistry) rebuildSession(r *http.Request, id string, print fingerprint, p mcp.Principal) (*session, error) {
	ctx := r.Context()
	t, ok := openSessionToken(id, g.sealer, p)
	if !ok || time.Since(t.openedAt()) > g.server.opts.Sessions.Life || t.Server == g.server.instance && g.server.hasPrivateStore() {
		return nil, errUnknownSession
	}
	record, err := g.server.loadRecord(ctx, t.Key)
	switch {
	case err != nil:
		return nil, err
	case record.Ended, !record.Used.IsZero() && time.Since(record.Used) > g.server.opts.Sessions.Idle+sweepEvery:
		return nil, errUnknownSession
	}
	ss := g.server.newSession(t.Key, p, httpwire.ClientOf(r, p))
	ss.id, ss.opened = print, t.Opened
	ss.edge = g.server.edge.NewSession(t.sessionState(), p, ss)
	ss.applyRecord(ctx, record)
	if ss, err = g.addSession(ss); err != nil {
		return nil, err
	}
	return ss, ss.markUsed(ctx)
}

// removeSession ends a session for all replicas. It is marked as ended in the store before its
// parts in this process end.
func (g *sessionRegistry) removeSession(ctx context.Context, ss *session, why error) error {
	err := ss.endEverywhere(ctx)
	g.dropSession(ss, why)
	return err
}

// dropSession ends the part of a session in this process.
func (g *sessionRegistry) dropSession(ss *session, why error) {
	g.mu.Lock()
	g.sessions.Delete(ss.id)
	g.mu.Unlock()
	g.server.opts.Quota.CloseSession(ss)
	ss.endLocally(why)
}

var errIdle = errors.New("the session was not used for a while")

// sweepIdle ends the sessions of this process that are not used, and sets the time of its next run.
func (g *sessionRegistry) sweepIdle() {
	g.endIdleSessions(g.server.opts.Sessions.Idle)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = nil
	if g.sessions.Len() > 0 && !g.closed {
		g.timer = time.AfterFunc(min(sweepEvery, g.server.opts.Sessions.Idle), g.sweepIdle)
	}
}

// endIdleSessions ends the sessions of this process that were not used for the given time. It
// checks them without the lock, since a session may be busy with the store. Another replica may
// still use a session that is idle here: the store's record says when it was last used.
func (g *sessionRegistry) endIdleSessions(limit time.Duration) {
	g.mu.Lock()
	all := slices.Collect(g.sessions.Values())
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), sweepEvery)
	defer cancel()
	for _, ss := range all {
		idle := ss.isIdle(limit, g.server.opts.Sessions.Life)
		if idle {
			g.dropSession(ss, errIdle)
		}
		if err := g.saveLastUse(ctx, ss, idle); err != nil && !errors.Is(err, errUnknownSession) {
			g.server.opts.Logger.Warn("the last use of a session could not be stored", "err", err)
		}
	}
}

// saveLastUse saves that a session is in use because of an open stream, without requests. If the
// session is idle and no other process can use it, its end is saved.
func (g *sessionRegistry) saveLastUse(ctx context.Context, ss *session, idle bool) error {
	switch {
	case idle && g.server.hasPrivateStore():
		return ss.endEverywhere(ctx) // no other process can continue it
	case idle || !ss.needsSave():
		return nil
	}
	if err := g.syncWithStore(ctx, ss); err != nil {
		return err
	}
	return ss.saveUse(ctx)
}

// forEach calls do for each session in memory.
func (g *sessionRegistry) forEach(do func(*session)) {
	g.mu.Lock()
	all := slices.Collect(g.sessions.Values())
	g.mu.Unlock()
	for _, ss := range all {
		do(ss)
	}
}

// closeAll ends the sessions in this process and waits until their calls have ended or ctx has.
// Other replicas may continue the sessions.
func (g *sessionRegistry) closeAll(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
	all := slices.Collect(g.sessions.Values())
	g.sessions = shrinkmap.Map[fingerprint, *session]{}
	g.mu.Unlock()
	for _, ss := range all {
		g.server.opts.Quota.CloseSession(ss)
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
