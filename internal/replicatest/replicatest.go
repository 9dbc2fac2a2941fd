// Package replicatest is a network of replicas and their values within one test process. It needs
// no time but what a test asks for, so it suits tests with fake time.
package replicatest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// Net implements [replica.Network] and [replica.Values].
type Net struct {
	Payload int // larger messages do not fit; set it before use

	mu       sync.Mutex
	putDelay time.Duration
	isFull   bool
	handlers map[string]replica.Handler
	away     map[string]bool
	silent   map[string]bool
	sent     int
	reads    int
	lossy    bool
	cut      bool
	healed   []func()
	gone     []func()
	values   map[string]stored
}

var errFull = errors.New("the values have no room")

type stored struct {
	value   []byte
	version uint64
	until   time.Time // zero: forever
}

// New returns a network for messages up to 1 MiB.
func New() *Net {
	return &Net{Payload: 1 << 20, handlers: map[string]replica.Handler{}, away: map[string]bool{}, silent: map[string]bool{}, values: map[string]stored{}}
}

// Receive implements [replica.Network].
func (n *Net) Receive(instance string, h replica.Handler) (func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handlers[instance] = h
	return func() { n.Remove(instance) }, nil
}

// Remove ends an instance, as if its process was killed.
func (n *Net) Remove(instance string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.handlers, instance)
}

// SetAway takes an instance off the network, or brings it back.
func (n *Net) SetAway(instance string, away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away[instance] = away
}

// SetSilent makes an instance answer no message, as a process that was stopped, or answer again.
func (n *Net) SetSilent(instance string, isSilent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[instance] = isSilent
}

// SetCut takes all instances off the network and the values, or brings them back.
func (n *Net) SetCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut && !cut {
		for _, f := range n.healed {
			go f()
		}
	}
	n.cut = cut
}

// Reconnect reconnects the instances. Only one of them notices: the nth that has called
// OnReconnect, counted from 0.
func (n *Net) Reconnect(nth int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = false
	go n.healed[nth]()
}

// OnReconnect calls f on a goroutine each time when the instances are back, until forget is called.
func (n *Net) OnReconnect(f func()) (forget func()) { return n.addHook(&n.healed, f) }

// addHook adds a function, and returns the one that replaces it by a function that does nothing.
func (n *Net) addHook(all *[]func(), f func()) (forget func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := len(*all)
	*all = append(*all, f)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		(*all)[number] = func() {}
	}
}

// ReportGone tells all who have called OnGone that a replica is gone.
func (n *Net) ReportGone() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.gone {
		go f()
	}
}

// OnGone makes ReportGone call f on a goroutine, until forget is called.
func (n *Net) OnGone(f func()) (forget func()) { return n.addHook(&n.gone, f) }

// SetLossy makes the network lose each third acknowledgement.
func (n *Net) SetLossy(lossy bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lossy = lossy
}

// SetPutDelay sets the time until a value that was stored is acknowledged.
func (n *Net) SetPutDelay(delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.putDelay = delay
}

// SetFull makes the values refuse new ones, as a store without room does.
func (n *Net) SetFull(isFull bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isFull = isFull
}

// Sent returns how many messages were sent.
func (n *Net) Sent() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent
}

// Reads returns how many values were read.
func (n *Net) Reads() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reads
}

// Send implements [replica.Network].
func (n *Net) Send(ctx context.Context, instance string, message []byte) ([]byte, error) {
	n.mu.Lock()
	h, cut := n.handlers[instance], n.cut
	if n.away[instance] {
		h = nil
	}
	n.sent++
	lost, isSilent := n.lossy && n.sent%3 == 0, n.silent[instance]
	n.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case cut:
		return nil, replica.ErrUnreachable
	case h == nil:
		return nil, replica.ErrGone
	case len(message) > n.Payload:
		return nil, replica.ErrTooLarge
	}
	if isSilent {
		return nil, awaitSilence(ctx)
	}
	answer, err := h(ctx, bytes.Clone(message))
	if lost {
		time.Sleep(time.Second)
		return nil, replica.ErrUnreachable
	}
	return answer, err
}

// awaitSilence waits as long as a network waits for an answer, and returns its error.
func awaitSilence(ctx context.Context) error {
	if err := timeout.Sleep(ctx, time.Second); err != nil {
		return err
	}
	return replica.ErrUnreachable
}

// SendAll implements [replica.Network].
func (n *Net) SendAll(message []byte) error {
	n.mu.Lock()
	cut, all := n.cut, make([]replica.Handler, 0, len(n.handlers))
	for instance, h := range n.handlers {
		if !n.away[instance] {
			all = append(all, h)
		}
	}
	n.mu.Unlock()
	switch {
	case cut:
		return replica.ErrUnreachable
	case len(message) > n.Payload:
		return replica.ErrTooLarge
	}
	for _, h := range all {
		_, _ = h(context.Background(), bytes.Clone(message)) // the answer goes nowhere
	}
	return nil
}

// Get implements [replica.Values].
func (n *Net) Get(_ context.Context, key string) ([]byte, uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	if n.cut {
		return nil, 0, replica.ErrUnreachable
	}
	v := n.values[key]
	if !v.until.IsZero() && !time.Now().Before(v.until) {
		v.value = nil
	}
	return v.value, v.version, nil
}

// Put implements [replica.Values].
func (n *Net) Put(_ context.Context, key string, value []byte, version uint64, life time.Duration) (uint64, error) {
	version, err := n.store(key, value, version, life)
	n.mu.Lock()
	delay := n.putDelay
	n.mu.Unlock()
	time.Sleep(delay)
	return version, err
}

func (n *Net) store(key string, value []byte, version uint64, life time.Duration) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.cut:
		return 0, replica.ErrUnreachable
	case n.isFull:
		return 0, errFull
	case n.values[key].version != version:
		return 0, replica.ErrStale
	}
	v := stored{value: value, version: version + 1}
	if life > 0 {
		v.until = time.Now().Add(life)
	}
	n.values[key] = v
	return v.version, nil
}

// Replace stores a value whatever its version is, so that no one else can store it again.
func (n *Net) Replace(key string, value []byte, life time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values[key] = stored{value, n.values[key].version + 100, time.Now().Add(life)}
}

// Watch implements [replica.Values]. It reports no changes.
func (n *Net) Watch(string, func(string)) (func(), error) { return func() {}, nil }
