package cluster_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay passes connections on to a NATS server. A test cuts them off, or holds them up.
type relay struct {
	listener net.Listener
	to       string

	held   sync.RWMutex // is locked while everything that is sent waits
	mu     sync.Mutex
	isCut  bool
	open   map[net.Conn]bool
	copies sync.WaitGroup
}

// startRelay starts a relay to an address, and returns it with its URL.
func startRelay(t *testing.T, to string) (*relay, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to, open: map[net.Conn]bool{}}
	r.copies.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.cut(true)
		r.copies.Wait()
	})
	return r, "nats://" + l.Addr().String()
}

func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.to)
		if err != nil || !r.add(near, far) {
			near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			r.copies.Go(func() {
				_, _ = io.Copy(holder{r, pair[0]}, pair[1])
				near.Close()
				far.Close()
			})
		}
	}
}

// add counts the two connections. It closes far and reports false if the relay is cut.
func (r *relay) add(near, far net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCut {
		far.Close()
		return false
	}
	r.open[near], r.open[far] = true, true
	return true
}

// cut closes all connections and refuses new ones, or accepts them again.
func (r *relay) cut(isCut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCut = isCut; isCut {
		for c := range r.open {
			c.Close()
		}
		clear(r.open)
	}
}

// hold holds up everything that is sent until release is called.
func (r *relay) hold() (release func()) {
	r.held.Lock()
	return r.held.Unlock
}

// holder is a writer that waits while its relay holds it up.
type holder struct {
	relay *relay
	to    io.Writer
}

func (h holder) Write(data []byte) (int, error) {
	h.relay.held.RLock()
	defer h.relay.held.RUnlock()
	return h.to.Write(data)
}
