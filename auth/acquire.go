package auth

import (
	"context"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/startphase"
)

// needKind orders the kinds of acquisitions: a later one does at least as much as an earlier one.
type needKind int

const (
	aheadOfTime needKind = iota // renew a token that is about to expire
	renewal                     // replace a token that was refused, or get the first
	stepUp                      // get a token with more scopes
	explicit                    // log in although there may be a token
)

// need says which token a request needs.
type need struct {
	kind        needKind
	failed      *credential // the token that was refused; nil without one
	challenge   challenge
	noRefresh   bool // a refreshed token was refused
	extraScopes []string
	operation   string // of a step-up

	result   outcome // set by acquire
	isShared bool    // another request has begun the flight; set by acquire
	notFresh error   // why the token could not be refreshed; set by refresh
}

// outcome says how a token was got.
type outcome int

const (
	adopted outcome = iota // another request or process has got it
	refreshed
	loggedIn
)

// flight is an acquisition that all requests wait for. Only one runs at a time.
type flight struct {
	kind    needKind
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int               // guarded by Transport.mu, as the fields up to the next line
	callers []context.Context // of all that have joined
	pageURL string            // where the user logs in now; empty without a login

	credential *credential // set before done is closed, as the fields below
	result     outcome
	err        error
}

// loginTimeout bounds an acquisition, in which a user may log in.
const loginTimeout = 5 * time.Minute

// acquire returns another token than the failed one. Concurrent calls share the work. If all
// callers have gone, a login is cancelled, but not a refresh.
func (t *Transport) acquire(ctx context.Context, n *need) (*credential, error) {
	if err := t.checkEncrypted(); err != nil {
		return nil, err
	}
	for {
		if cur := t.current.Load(); n.kind != explicit && cur.isNewer(n.failed) {
			if n.kind != stepUp || cur.hasRequested(n.challenge.scopes) {
				n.result = adopted
				return cur, nil
			}
			n.failed = cur // its scopes are kept
		}
		f, isOwn := t.joinFlight(ctx, n)
		select {
		case <-f.done:
		case <-ctx.Done():
		}
		t.leaveFlight(f)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case isOwn, f.err != nil && f.kind >= n.kind:
		case f.err != nil, n.kind == explicit && f.kind < explicit:
			continue
		case n.kind == stepUp && !f.credential.hasRequested(n.challenge.scopes):
			continue
		}
		n.result, n.isShared = f.result, !isOwn
		return f.credential, f.err
	}
}

// joinFlight returns the flight in progress, or starts one.
func (t *Transport) joinFlight(ctx context.Context, n *need) (f *flight, isOwn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f = t.flight; f == nil {
		isOwn = true
		f = &flight{kind: n.kind, done: make(chan struct{})}
		detached, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), loginTimeout, errLoginTimeout)
		f.cancel, t.flight = cancel, f
		go t.fly(context.WithValue(detached, flightKey{}, f), f, n)
	}
	f.waiters++
	f.callers = append(f.callers, ctx)
	if f.pageURL != "" {
		startphase.Report(ctx, startphase.Phase{LoginURL: f.pageURL})
	}
	return f, isOwn
}

var errLoginTimeout = errors.New("the login was not finished within 5 minutes")

func (t *Transport) leaveFlight(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	f.cancel()
	t.endFlight(f)
}

func (t *Transport) fly(ctx context.Context, f *flight, n *need) {
	defer f.cancel()
	inner := *n
	f.credential, f.err = t.obtainFor(ctx, &inner)
	f.result = inner.result
	t.mu.Lock()
	t.endFlight(f)
	t.mu.Unlock()
	close(f.done)
}

// endFlight lets the next request begin its own flight. t.mu is held.
func (t *Transport) endFlight(f *flight) {
	if t.flight == f {
		t.flight = nil
	}
}

// obtainFor gets a token: one that another process has stored, a refreshed one, or one of a login.
func (t *Transport) obtainFor(ctx context.Context, n *need) (*credential, error) {
	record, err := t.opts.Store.Load(ctx, t.key)
	if err != nil {
		return nil, err
	}
	if n.kind <= renewal {
		if c, err := newCredential(record); err == nil && c.isNewer(n.failed) && !c.isExpired() {
			n.result = adopted
			return t.adoptRecord(record)
		}
	}
	if n.kind == aheadOfTime {
		return t.refresh(ctx, n, record)
	}
	// A token that was refused before its end may mean that the server has another authorization
	// server now. The refresh token of the old one must not be used before that is known.
	if n.kind == renewal && !n.noRefresh && n.failed != nil && n.failed.isExpired() {
		if c, err := t.tryRefresh(ctx, n, record); c != nil || err != nil {
			return c, err
		}
	}
	d, err := t.discover(ctx, n, record)
	if err != nil {
		return nil, err
	}
	if record, err = t.bindRecord(record, d); err != nil {
		return nil, err
	}
	if n.kind == renewal && !n.noRefresh && (n.failed == nil || !n.failed.isExpired()) {
		if c, err := t.tryRefresh(ctx, n, record); c != nil || err != nil {
			return c, err
		}
	}
	if n.kind == stepUp {
		t.countStepUp(n.operation)
	}
	n.result = loggedIn
	return t.obtain(ctx, n, d, record)
}

// tryRefresh refreshes a token if it can be. It returns neither a credential nor an error if a
// login is needed.
func (t *Transport) tryRefresh(ctx context.Context, n *need, record *Record) (*credential, error) {
	if record == nil || record.RefreshToken == "" {
		return nil, nil
	}
	c, err := t.refresh(ctx, n, record)
	if errors.Is(err, errNoRefresh) {
		return nil, nil
	}
	return c, err
}

// saveTimeout bounds the wait for the lock of a record, when it has new tokens.
const saveTimeout = 30 * time.Second

// save replaces the record and makes its token the current one, also if the callers have gone.
func (t *Transport) save(ctx context.Context, r *Record) (*credential, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	var stored *Record
	err := t.opts.Store.Update(ctx, t.key, func(before *Record) (*Record, error) {
		if before != nil {
			r.Generation = before.Generation
		}
		stored = r
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	return t.adoptRecord(stored)
}

// canObtain reports whether a token can be got without asking the caller.
func (t *Transport) canObtain() bool {
	return t.opts.Login != nil || t.opts.ClientCredentials || t.opts.Assertion != nil || t.opts.Subject != nil
}

// flightKey is the key of the flight in its context.
type flightKey struct{}

// reportLogin tells the callers of the dials that wait for a flight that a user is logging in, so
// that they stop their clocks. An empty URL ends that.
func (t *Transport) reportLogin(ctx context.Context, url string) {
	f, _ := ctx.Value(flightKey{}).(*flight)
	if f == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock() // held, so that each caller gets the reports in their order
	f.pageURL = url
	for _, caller := range f.callers {
		startphase.Report(caller, startphase.Phase{LoginURL: url})
	}
}
