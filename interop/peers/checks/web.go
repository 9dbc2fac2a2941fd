package checks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const sessionHeader = "Mcp-Session-Id"

// Web sends a client's HTTP requests and records the session's id, revision and end. It is safe for
// concurrent use.
type Web struct {
	mu      sync.Mutex
	session string   // the newest id that a server gave
	version string   // the newest revision that a request named
	posted  string   // URL of the newest message
	deleted []string // the outcome of each DELETE
}

// Client returns an HTTP client that sends its requests through w.
func (w *Web) Client() *http.Client { return &http.Client{Transport: w} }

// RoundTrip implements [http.RoundTripper].
func (w *Web) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method == http.MethodPost {
		w.posted = r.URL.String()
	}
	if version := r.Header.Get("Mcp-Protocol-Version"); version != "" {
		w.version = version
	}
	if r.Method == http.MethodDelete {
		outcome := fmt.Sprint(err)
		if err == nil {
			outcome = fmt.Sprint(res.StatusCode)
		}
		w.deleted = append(w.deleted, outcome)
	}
	if err == nil && res.Header.Get(sessionHeader) != "" {
		w.session = res.Header.Get(sessionHeader)
	}
	return res, err
}

// sessionEnded returns an error unless the client has ended its session of Streamable HTTP and the
// server knows that.
func (w *Web) sessionEnded() error {
	w.mu.Lock()
	session, deleted := w.session, w.deleted
	w.mu.Unlock()
	if session == "" {
		return errors.New("the server gave no session")
	}
	if len(deleted) != 1 || !strings.HasPrefix(deleted[0], "2") {
		return fmt.Errorf("DELETE: got %v, want one that was accepted", deleted)
	}
	return w.gone()
}

// sessionless returns an error if there was a session. The modern era does not have sessions.
func (w *Web) sessionless() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != "" || len(w.deleted) > 0 {
		return fmt.Errorf("got session %q and DELETE %v, want neither", w.session, w.deleted)
	}
	return nil
}

// streamEnded returns an error unless the server ended the session when the client closed the
// stream.
func (w *Web) streamEnded() (err error) {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = w.gone(); err == nil {
			return nil
		}
	}
	return err
}

// gone returns an error unless the server answers a message of the ended session with 404.
func (w *Web) gone() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	w.mu.Lock()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.posted, strings.NewReader(`{"jsonrpc":"2.0","id":"late","method":"ping"}`))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", w.version)
		r.Header.Set(sessionHeader, w.session)
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		return fmt.Errorf("a request in a session that has ended: got status %d, want 404", res.StatusCode)
	}
	return nil
}
