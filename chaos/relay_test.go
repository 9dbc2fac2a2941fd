//go:build linux

package chaos

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A target is an address behind a relay.
type target struct{ name, address string }

// A relay passes TCP connections to targets in turn. It can reset, refuse and delay them.
type relay struct {
	listener net.Listener
	targets  []target
	taken    func(mark, target string) // called with the value of markField of the first request of a connection
	turn     atomic.Int64
	delay    atomic.Int64 // of each part of the data, in nanoseconds
	refuses  atomic.Bool

	mu    sync.Mutex
	links map[*link]struct{}
}

// A link is one connection through a relay.
type link struct{ in, out net.Conn }

// markField is a field of the requests that names the operation.
const markField = "X-Chaos-Op"

func newRelay(t *testing.T, targets []target, taken func(mark, target string)) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, targets: targets, taken: taken, links: map[*link]struct{}{}}
	t.Cleanup(func() { l.Close(); r.cut(1, nil) })
	go r.accept()
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.connect(in)
	}
}

// connect passes a connection to the next target that accepts it.
func (r *relay) connect(in net.Conn) {
	for range r.targets {
		if r.refuses.Load() {
			break
		}
		to := r.targets[int(r.turn.Add(1))%len(r.targets)]
		out, err := net.DialTimeout("tcp", to.address, time.Second)
		if err != nil {
			continue
		}
		l := &link{in, out}
		r.mu.Lock()
		r.links[l] = struct{}{}
		r.mu.Unlock()
		go r.pass(l, out, in, nil)
		r.pass(l, in, out, func(first []byte) { r.tell(first, to.name) })
		return
	}
	reset(in)
}

// tell reads the mark of a request.
func (r *relay) tell(first []byte, target string) {
	_, rest, ok := bytes.Cut(first, []byte("\r\n"+markField+": "))
	if mark, _, ended := bytes.Cut(rest, []byte("\r\n")); ok && ended && r.taken != nil {
		r.taken(string(mark), target)
	}
}

// pass copies data until one side ends; that ends the link.
func (r *relay) pass(l *link, from, to net.Conn, first func([]byte)) {
	defer r.end(l)
	data := make([]byte, 64<<10)
	for {
		n, err := from.Read(data)
		if n > 0 {
			if first != nil {
				first(data[:n])
				first = nil
			}
			if delay := r.delay.Load(); delay > 0 {
				time.Sleep(time.Duration(delay)) // the fault
			}
			if _, err := to.Write(data[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) end(l *link) {
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
	l.in.Close()
	l.out.Close()
}

// cut resets a part of the connections: each with the probability.
func (r *relay) cut(probability float64, random *rand.Rand) (n int) {
	r.mu.Lock()
	var all []*link
	for l := range r.links {
		if random == nil || random.Float64() < probability {
			all = append(all, l)
		}
	}
	r.mu.Unlock()
	for _, l := range all {
		reset(l.in)
		reset(l.out)
	}
	return len(all)
}

// reset ends a connection in a way that the other side notices as a loss.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // close sends RST
	}
	c.Close()
}
