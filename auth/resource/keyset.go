package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/go-jose/go-jose/v4"
)

// keySet holds the public keys of an issuer. It is safe for concurrent use.
type keySet struct {
	issuer *issuer
	log    *slog.Logger

	mu       sync.Mutex
	keys     []jose.JSONWebKey
	fetched  time.Time     // the last success
	stale    time.Time     // the keys should be read again
	tried    time.Time     // the begin or end of the last attempt
	err      error         // of the last attempt
	fetching chan struct{} // closed at the end of the attempt in progress; nil without one
}

const (
	maxKeys      = 100
	minKeyLife   = 5 * time.Minute
	maxKeyLife   = 24 * time.Hour // also for keys of an issuer that does not answer
	refetchAfter = 30 * time.Second
)

// find returns the keys that may have signed a token. It reads the keys of the issuer at first use,
// in the background when they are stale, and at once for an unknown id, but then at most every 30
// seconds. An error means that the issuer does not answer.
func (k *keySet) find(ctx context.Context, id, algorithm string) ([]jose.JSONWebKey, error) {
	for {
		k.mu.Lock()
		now := k.issuer.now()
		usable := !k.fetched.IsZero() && now.Sub(k.fetched) < maxKeyLife+minKeyLife
		found := selectKeys(k.keys, id, algorithm)
		var wait chan struct{}
		switch {
		case usable && len(found) > 0:
			if now.After(k.stale) && now.Sub(k.tried) >= refetchAfter {
				k.startFetch(ctx)
			}
			k.mu.Unlock()
			return found, nil
		case k.fetching != nil:
			wait = k.fetching
		case usable && now.Sub(k.tried) < refetchAfter:
			err := k.err
			k.mu.Unlock()
			if err != nil {
				return nil, &unavailableError{err}
			}
			return nil, nil // the issuer has no such key
		case !usable && k.err != nil && now.Sub(k.tried) < retryAfter:
			err := k.err
			k.mu.Unlock()
			return nil, &unavailableError{err}
		default:
			wait = k.startFetch(ctx)
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, &unavailableError{context.Cause(ctx)}
		}
	}
}

// startFetch reads the keys. k.mu is held.
func (k *keySet) startFetch(ctx context.Context) (done chan struct{}) {
	if k.fetching != nil {
		return k.fetching
	}
	done = make(chan struct{})
	k.fetching, k.tried = done, k.issuer.now()
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
		defer cancel()
		keys, life, err := k.fetch(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		now := k.issuer.now()
		k.tried = now
		if k.err = err; err == nil {
			k.keys, k.fetched, k.stale = keys, now, now.Add(life)
		} else if len(k.keys) > 0 {
			k.log.Warn("the keys of an issuer could not be read; the last ones stay in use", "issuer", k.issuer.URL, "err", err)
		}
		k.fetching = nil
		close(done)
	}()
	return done
}

func (k *keySet) fetch(ctx context.Context) (keys []jose.JSONWebKey, life time.Duration, err error) {
	address, err := k.issuer.endpoint(ctx, k.issuer.KeySetURL, "jwks_uri", func(m *oauth.ServerMetadata) string { return m.JWKSURI })
	if err != nil {
		return nil, 0, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	header, err := k.issuer.fetch(ctx, address, &set)
	if err != nil {
		k.issuer.renewMetadata(ctx)
		return nil, 0, err
	}
	if len(set.Keys) > maxKeys {
		return nil, 0, fmt.Errorf("%s has %d keys, want at most %d", address, len(set.Keys), maxKeys)
	}
	for n, raw := range set.Keys {
		key, err := readKey(raw)
		if err != nil {
			k.log.Warn("a key of an issuer is not used", "issuer", k.issuer.URL, "number", n+1, "err", err)
			continue
		}
		keys = append(keys, *key)
	}
	return keys, keyLife(header), nil
}

// selectKeys returns the keys for an id and an algorithm. A token without an id may be signed by any
// key, a key without an algorithm may use any that fits its type.
func selectKeys(keys []jose.JSONWebKey, id, algorithm string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range keys {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) && slices.Contains(algorithmsOf(key), algorithm) {
			found = append(found, key)
		}
	}
	return found
}
