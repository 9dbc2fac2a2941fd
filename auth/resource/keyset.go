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
	fetched  time.Time     // when keys was read
	stale    time.Time     // from then on, findKeys reads keys again in the background
	tried    time.Time     // when the latest fetch ended, or began if it is in progress
	err      error         // of the latest fetch that has ended
	fetching chan struct{} // closed when the fetch in progress ends; nil if none is in progress
}

const (
	maxKeys = 100
	// minKeyLife and maxKeyLife bound the max-age that an issuer may give its keys. If
	// the issuer does not answer when they are stale, the keys stay in use for maxKeyLife
	// and minKeyLife together.
	minKeyLife = 5 * time.Minute
	maxKeyLife = 24 * time.Hour
	// refetchAfter is the shortest time between two requests for the keys, or the metadata, of an
	// issuer that has answered before.
	refetchAfter = 30 * time.Second
)

// findKeys returns the keys that may have signed a token with the given key id and algorithm, or
// none if the issuer has no such key. It waits for a fetch if no keys were read yet, or if the id
// is unknown and the last fetch is refetchAfter ago. It reads stale keys again in the background.
// An error means that the issuer does not answer or that ctx has ended.
func (k *keySet) findKeys(ctx context.Context, id, algorithm string) ([]jose.JSONWebKey, error) {
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

// startFetch starts to read the keys unless a fetch is in progress. done is closed when the fetch
// ends. The end of ctx does not end the fetch: other requests wait for it. The caller holds k.mu.
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

// fetch reads the keys from the issuer. life is how long they need not be read again. It skips keys
// that it cannot use.
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

// selectKeys returns the keys for an id and an algorithm. Any key may have signed a token without a
// key id. A key that names no algorithm may be used with each algorithm of its type.
func selectKeys(keys []jose.JSONWebKey, id, algorithm string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range keys {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) && slices.Contains(algorithmsOf(key), algorithm) {
			found = append(found, key)
		}
	}
	return found
}
