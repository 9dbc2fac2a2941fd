package httpwire

import (
	"context"
	"errors"
	"sync"
)

// ErrShutdown is the reason for which a server ends connections and refuses further ones.
var ErrShutdown = errors.New("the server is shutting down")

// Registry holds the open connections of a server by their ids. The zero Registry is empty. It is
// safe for concurrent use.
type Registry[C any] struct {
	mu      sync.Mutex
	open    map[string]C
	serving sync.WaitGroup // counts the connections
	closing bool
}

// Add adds a connection. The error says that the server is shutting down. The caller must call
// Remove when an added connection has ended.
func (r *Registry[C]) Add(id string, c C) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return ErrShutdown
	}
	if r.open == nil {
		r.open = map[string]C{}
	}
	r.open[id] = c
	r.serving.Add(1)
	return nil
}

// Remove removes an added connection.
func (r *Registry[C]) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, id)
	r.serving.Done()
}

// Find returns the open connection with an id.
func (r *Registry[C]) Find(id string) (c C, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok = r.open[id]
	return c, ok
}

// IsClosing reports whether Shutdown has been called.
func (r *Registry[C]) IsClosing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// Shutdown refuses further connections, calls drain for each open one, and waits until all are
// removed. If ctx ends first, it calls abort for the remaining ones, and returns the cause of ctx.
func (r *Registry[C]) Shutdown(ctx context.Context, drain, abort func(C)) error {
	for _, c := range r.stopAccepting() {
		drain(c)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.serving.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range r.stopAccepting() {
		abort(c)
	}
	return context.Cause(ctx)
}

// stopAccepting makes the registry refuse further connections, and returns the open ones.
func (r *Registry[C]) stopAccepting() (open []C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
	for _, c := range r.open {
		open = append(open, c)
	}
	return open
}
