package resource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// tokenKey identifies a token in the cache, which does not keep tokens.
type tokenKey [sha256.Size]byte

// newTokenKey returns the key of a token. It does not allocate for usual tokens.
func newTokenKey(raw string) tokenKey {
	var buf [2 << 10]byte
	if len(raw) > len(buf) {
		return sha256.Sum256([]byte(raw))
	}
	return sha256.Sum256(buf[:copy(buf[:], raw)])
}

// verdict is the result of the verification of one token.
type verdict struct {
	auth    *httpwire.Authorization // nil if err is set
	err     error
	expires time.Time // of the token
	until   time.Time // the verdict counts until then
}

// tokenCache holds verdicts. When the young half is full, it becomes the old half, and the old half is
// dropped. A verdict that is used moves to the young half.
type tokenCache struct {
	mu       sync.RWMutex
	young    map[tokenKey]verdict
	old      map[tokenKey]verdict
	refused  map[tokenKey]verdict // apart, so that invalid tokens push out no valid ones
	verifies map[tokenKey]*verification
	local    verificationPool // of verifications without a question to an issuer about the token
	asking   verificationPool
}

// maxRefused is the number of refusals in a cache. All are dropped when it is full.
const maxRefused = 5000

// halfCache is the number of verdicts in each half of a cache, about 10 MB with their tokens.
const halfCache = 5000

// verification is one verification for all requests that wait for it.
type verification struct {
	run    func() verdict
	done   chan struct{} // closed at its end
	result verdict
}

func newTokenCache() *tokenCache {
	return &tokenCache{young: map[tokenKey]verdict{}, refused: map[tokenKey]verdict{}, verifies: map[tokenKey]*verification{},
		local: verificationPool{bySender: map[string]int{}}, asking: verificationPool{bySender: map[string]int{}}}
}

// find returns the verdict about a token, if it counts at a time.
func (c *tokenCache) find(key tokenKey, now time.Time) (verdict, bool) {
	c.mu.RLock()
	v, isYoung := c.young[key]
	if !isYoung {
		v = c.old[key]
	}
	if !v.until.After(now) {
		v = c.refused[key]
	}
	c.mu.RUnlock()
	if !v.until.After(now) {
		return v, false
	}
	if !isYoung && v.err == nil {
		c.addVerdict(key, v)
	}
	return v, true
}

func (c *tokenCache) addVerdict(key tokenKey, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.err != nil {
		if len(c.refused) >= maxRefused {
			clear(c.refused)
		}
		c.refused[key] = v
		return
	}
	if len(c.young) >= halfCache {
		c.old, c.young = c.young, make(map[tokenKey]verdict, halfCache)
	}
	c.young[key] = v
}

var errTooManyVerifications = &unavailableError{errors.New("too many tokens are being verified")}

// verifyOnce calls verify, or waits for a call in progress for the same token. The call takes a place
// of the pool for the sender. The end of ctx ends the waiting only.
func (c *tokenCache) verifyOnce(ctx context.Context, key tokenKey, pool *verificationPool, sender string, verify func() verdict) (*httpwire.Authorization, error) {
	c.mu.Lock()
	v := c.verifies[key]
	if v == nil {
		if !pool.enter(sender) {
			c.mu.Unlock()
			return nil, errTooManyVerifications
		}
		v = &verification{run: verify, done: make(chan struct{})}
		c.verifies[key] = v
		go c.runVerification(key, v, func() { pool.leave(sender) })
	}
	c.mu.Unlock()
	select {
	case <-v.done:
		return v.result.auth, v.result.err
	case <-ctx.Done():
		return nil, &unavailableError{context.Cause(ctx)}
	}
}

// runVerification runs a verification. It calls leave at the end, while c.mu is held.
func (c *tokenCache) runVerification(key tokenKey, v *verification, leave func()) {
	defer func() {
		if p := recover(); p != nil { // of Options.Check
			v.result = verdict{err: &unavailableError{fmt.Errorf("the verification of a token panicked: %v\n%s", p, debug.Stack())}}
		}
		if !v.result.until.IsZero() {
			c.addVerdict(key, v.result)
		}
		c.mu.Lock()
		delete(c.verifies, key)
		leave()
		c.mu.Unlock()
		close(v.done)
	}()
	v.result = v.run()
}
