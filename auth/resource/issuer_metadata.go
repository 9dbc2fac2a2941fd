package resource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// metadataLife is how long metadata need not be read again. The addresses in it rarely change.
const metadataLife = 24 * time.Hour

// issuerMetadata is the metadata of an issuer that was read last. It stays in use if it cannot be
// read again.
type issuerMetadata struct {
	mu       sync.Mutex
	document *oauth.ServerMetadata // nil before the first success
	readAt   time.Time
	failure  error         // of the last attempt
	triedAt  time.Time     // the begin or end of the last attempt
	reading  chan struct{} // closed at the end of the attempt in progress; nil without one
}

// readMetadata returns the metadata of the issuer. It waits for the first success only, at most
// until ctx ends, and reads old metadata again in the background.
func (i *issuer) readMetadata(ctx context.Context) (*oauth.ServerMetadata, error) {
	m := &i.metadata
	for {
		m.mu.Lock()
		now := i.now()
		if document := m.document; document != nil {
			if now.Sub(m.readAt) >= metadataLife && now.Sub(m.triedAt) >= refetchAfter {
				i.startReadingMetadata(ctx)
			}
			m.mu.Unlock()
			return document, nil
		}
		if m.reading == nil && m.failure != nil && now.Sub(m.triedAt) < retryAfter {
			defer m.mu.Unlock()
			return nil, m.failure
		}
		done := i.startReadingMetadata(ctx)
		m.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// renewMetadata reads the metadata again in the background, because an address in it failed, but at
// most every 30 seconds.
func (i *issuer) renewMetadata(ctx context.Context) {
	i.metadata.mu.Lock()
	defer i.metadata.mu.Unlock()
	if i.metadata.document != nil && i.now().Sub(i.metadata.triedAt) >= refetchAfter {
		i.startReadingMetadata(ctx)
	}
}

// startReadingMetadata reads the metadata, independently of the end of ctx. i.metadata.mu is held.
func (i *issuer) startReadingMetadata(ctx context.Context) (done chan struct{}) {
	m := &i.metadata
	if m.reading != nil {
		return m.reading
	}
	done = make(chan struct{})
	m.reading, m.triedAt = done, i.now()
	go func() {
		document, err := i.fetchMetadata(context.WithoutCancel(ctx))
		m.mu.Lock()
		defer m.mu.Unlock()
		m.triedAt, m.failure, m.reading = i.now(), err, nil
		switch {
		case err == nil:
			m.document, m.readAt = document, m.triedAt
		case m.document != nil:
			i.log.Warn("the metadata of an issuer could not be read; the last one stays in use", "issuer", i.URL, "err", err)
		}
		close(done)
	}()
	return done
}

// fetchMetadata tries the addresses in the order of the specification
// (authorization-server-discovery). The document must name this issuer.
func (i *issuer) fetchMetadata(ctx context.Context) (*oauth.ServerMetadata, error) {
	var failures []error
	for _, address := range oauth.ServerMetadataURLs(i.url) {
		m := &oauth.ServerMetadata{}
		if _, err := i.fetch(ctx, address, m); err != nil {
			failures = append(failures, err)
			continue
		}
		if m.Issuer != i.URL {
			failures = append(failures, fmt.Errorf("%s names the issuer %q, want %q to the letter", address, m.Issuer, i.URL))
			continue
		}
		return m, nil
	}
	return nil, fmt.Errorf("the metadata of %s cannot be read: %w", i.URL, errors.Join(failures...))
}
