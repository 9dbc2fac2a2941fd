package resource

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// TestMetadataWaiters checks that requests which wait for the metadata of an issuer end with their
// context, and that the end of the first one does not end the reading for the others.
func TestMetadataWaiters(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 10), make(chan struct{})
	as := authtest.Start(t, &authtest.Options{OnRequest: func(endpoint string, _ http.ResponseWriter, _ *http.Request) bool {
		if endpoint == "metadata" {
			asked <- struct{}{}
			<-release
		}
		return false
	}})
	i := newTestServer(t, as, nil).issuers[0]
	read := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := i.readMetadata(ctx)
			done <- err
		}()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := read(ctx)
	<-asked
	patient := read(t.Context())
	cancel()
	for name, done := range map[string]<-chan error{"first": first, "late": read(ctx)} {
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s reader: got %v, want %v", name, err, context.Canceled)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s reader still waits although its context has ended", name)
		}
	}
	close(release)
	if err := <-patient; err != nil {
		t.Errorf("a reader with time: %v", err)
	}
	if n := as.Count("metadata"); n != 1 {
		t.Errorf("the metadata was read %d times, want 1", n)
	}
}

// TestStaleMetadata checks that known addresses stay in use if the metadata cannot be read again,
// and that new addresses are found when an old one fails.
func TestStaleMetadata(t *testing.T) {
	t.Parallel()
	var moved, metadataDown atomic.Bool
	var issuer atomic.Value
	as, s := newOpaqueServer(t, authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case endpoint == "metadata" && metadataDown.Load():
			w.WriteHeader(http.StatusBadGateway)
		case endpoint == "metadata" && moved.Load():
			io.WriteString(w, `{"issuer":"`+issuer.Load().(string)+`","introspection_endpoint":"`+issuer.Load().(string)+`/introspect?moved"}`)
		case endpoint == "introspect" && moved.Load() != (r.URL.RawQuery == "moved"):
			w.WriteHeader(http.StatusNotFound)
		default:
			return false
		}
		return true
	}}, nil)
	issuer.Store(as.Issuer)
	status := func() int {
		resp, _ := send(s, newPOST("/mcp", "Bearer "+as.IssueToken(publicURL)))
		return resp.StatusCode
	}
	expect := func(what string, want int) {
		t.Helper()
		if got := status(); got != want {
			t.Errorf("%s: status %d, want %d", what, got, want)
		}
	}
	awaitReading := func() {
		m := &s.issuers[0].metadata
		m.mu.Lock()
		reading := m.reading
		m.mu.Unlock()
		if reading != nil {
			<-reading
		}
	}
	expect("first", 200)
	as.Advance(time.Hour)
	moved.Store(true)
	metadataDown.Store(true)
	expect("the endpoint fails", 503)
	awaitReading()
	moved.Store(false)
	expect("up again, without metadata", 200)
	as.Advance(25 * time.Hour)
	expect("a day later, without metadata", 200)
	awaitReading()
	as.Advance(time.Hour)
	metadataDown.Store(false)
	moved.Store(true)
	expect("the endpoint has moved", 503)
	awaitReading()
	expect("at the new address", 200)
	before := as.Count("metadata")
	moved.Store(false)
	for range 5 {
		expect("moved at once", 503)
	}
	if n := as.Count("metadata") - before; n > 0 {
		t.Errorf("metadata that is new was read %d times more", n)
	}
}
