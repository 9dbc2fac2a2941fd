package server

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/schema"
)

// Store remembers the results of steps that must not happen twice. Replicas of one server must
// share one.
type Store interface {
	// Do returns the result stored under key. If it has none, it runs fn and stores fn's result,
	// but not its error. Calls with the same key run fn one at a time. A result must be kept longer
	// than [Options.StateTTL].
	Do(ctx context.Context, key string, fn func() ([]byte, error)) ([]byte, error)
}

// Once runs fn once per call of the client: the result is remembered, so that fn does not run again
// when the handler runs again with an answer. The key must be unique within the call. Errors are
// not remembered. The result travels as JSON in the request state, which has a limit: see
// [Options].MaxState.
//
// A client can repeat an old round, and then fn runs again; [OnceStored] prevents that. In a
// handler that cannot ask, Once just runs fn.
func Once[T any](ctx context.Context, key string, fn func(context.Context) (T, error)) (T, error) {
	return OnceStored(ctx, nil, key, fn)
}

// OnceStored is [Once] with a store that also keeps the result on the server, so that fn does not
// run again even if a client repeats an old round. A nil store makes it the same as [Once].
func OnceStored[T any](ctx context.Context, store Store, key string, fn func(context.Context) (T, error)) (T, error) {
	c := callFrom(ctx)
	if c == nil || !mcpwire.MayAsk(c.req.Method) {
		return fn(ctx)
	}
	var result T
	chain, memo := c.lookupMemo(key)
	if memo != nil {
		return result, schema.Decode(memo, &result)
	}
	ran := false
	run := func() (raw []byte, err error) {
		ran = true
		if result, err = fn(ctx); err != nil {
			return nil, err
		}
		return schema.Encode(result)
	}
	raw, err := c.runStored(ctx, store, chain+"/"+key, run)
	if err != nil {
		return result, err
	}
	c.storeMemo(key, raw)
	if !ran {
		err = schema.Decode(raw, &result)
	}
	return result, err
}

func (c *call) runStored(ctx context.Context, store Store, key string, run func() ([]byte, error)) ([]byte, error) {
	if store == nil {
		return run()
	}
	return store.Do(ctx, key, run)
}

// lookupMemo returns the id of the call, which is the same in all of its rounds, and the result
// remembered under key, or nil.
func (c *call) lookupMemo(key string) (chain string, memo json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.inputState()
	return a.chain, a.memos[key]
}

func (c *call) storeMemo(key string, memo json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.input.memos[key] = memo
	}
}

// NewMemoryStore returns a [Store] in the memory of this process. ttl is how long it keeps results;
// 0 means an hour.
func NewMemoryStore(ttl time.Duration) Store {
	if ttl <= 0 {
		ttl = time.Hour
	}
	return &memoryStore{ttl: ttl}
}

// memoryStore implements [Store].
type memoryStore struct {
	ttl time.Duration

	mu      sync.Mutex
	steps   map[string]*storedStep
	sweepAt int // the number of steps at which expired ones are dropped
}

type storedStep struct {
	token   chan struct{} // holds a token while the step is not running
	done    bool          // guarded by token, as is result
	result  []byte
	expires time.Time
	waiting int // the number of calls that run the step or wait for it; guarded by memoryStore.mu
}

// Do implements [Store].
func (m *memoryStore) Do(ctx context.Context, key string, fn func() ([]byte, error)) ([]byte, error) {
	st := m.acquireStep(key)
	defer m.releaseStep(key, st)
	select {
	case <-st.token:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { st.token <- struct{}{} }()
	if st.done {
		return st.result, nil
	}
	result, err := fn()
	if err != nil {
		return nil, err
	}
	st.result, st.done = result, true
	return result, nil
}

func (m *memoryStore) acquireStep(key string) *storedStep {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps == nil {
		m.steps, m.sweepAt = map[string]*storedStep{}, minSweep
	}
	now := time.Now()
	if len(m.steps) >= m.sweepAt {
		m.dropExpired(now)
	}
	st := m.steps[key]
	if st == nil || st.waiting == 0 && !now.Before(st.expires) {
		st = &storedStep{expires: now.Add(m.ttl), token: make(chan struct{}, 1)}
		st.token <- struct{}{}
		m.steps[key] = st
	}
	st.waiting++
	return st
}

func (m *memoryStore) releaseStep(key string, st *storedStep) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st.waiting--
	st.expires = time.Now().Add(m.ttl)
	if st.waiting == 0 && !st.done {
		delete(m.steps, key)
	}
}

func (m *memoryStore) dropExpired(now time.Time) {
	for key, st := range m.steps {
		if st.waiting == 0 && !now.Before(st.expires) {
			delete(m.steps, key)
		}
	}
	m.sweepAt = max(minSweep, 2*len(m.steps))
}
