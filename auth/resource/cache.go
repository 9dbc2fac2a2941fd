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

// tokenKey is the SHA-256 hash of a token, its key in the cache.
type tokenKey [sha256.Size]byte

// newTokenKey returns the key of a token. It does not allocate for tokens of up to 2 KB.
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
	until   time.Time // until then the cache may answer with this verdict; zero if it may not
}

// tokenCache holds verdicts. When the young half is full, it becomes the old half, and the old half
// is dropped. A verdict that is used moves to the young half.
type tokenCache struct {
	mu       sync.RWMutex
	young    map[tokenKey]verdict
	old      map[tokenKey]verdict
	refused  map[tokenKey]verdict // with an error; separate, so that invalid tokens evict no valid ones
	verifies map[tokenKey]*verification
	local    verificationPool // limits verifications of a signature
	asking   verificationPool // limits verifications by introspection, which send the token to an issuer
}

// maxRefused is the largest number of refused tokens in a cache. When it is reached, all are
// dropped.
const maxRefused = 5000

// halfCache is the largest number of verdicts in each half of a cache. With the tokens that they
// hold, 5,000 verdicts take about 10 MB.
const halfCache = 5000

// verification is a running verification of one token. All requests with the token wait for it.
type verification struct {
	run    func() verdict
	done   chan struct{} // closed at its end
	result verdict
}

func newTokenCache() *tokenCache {
	return &tokenCache{young: map[tokenKey]verdict{}, refused: map[tokenKey]verdict{}, verifies: map[tokenKey]*verification{},
		local: verificationPool{bySender: map[string]int{}}, asking: verificationPool{bySender: map[string]int{}}}
}

// findVerdict returns the verdict about a token. It reports false if there is none, or none valid
// at now.
func (c *tokenCache) findVerdict(key tokenKey, now time.Time) (verdict, bool) {
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

// verifyOnce calls verify, or waits for a call in progress for the same token. It fails if the pool
// has no place left for the sender. If ctx ends, verifyOnce returns, but the call continues for
// other requests.
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
		if p := recover(); p != nil { // Options.Check is the caller's code
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
