package replica

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
)

// LeaseLife is how long a lease outlives its holder. LeaseRenewal is how often the holder renews
// it.
const (
	LeaseLife    = 6 * time.Second
	LeaseRenewal = 2 * time.Second
)

// leaseMargin is how long before its end a lease counts as lost, so that what its holder has begun
// has arrived.
const leaseMargin = time.Second

// leaseWait is the time between two tries to get a lease that another replica holds.
const leaseWait = 200 * time.Millisecond

// A Lease is held by one replica at a time. It ends with [Lease.Release], or when it could not be
// renewed.
type Lease struct {
	values  Values
	key     string
	value   []byte
	cancel  context.CancelFunc
	ctx     context.Context
	done    chan struct{} // closed when the renewals have ended
	version uint64        // owned by renew until done is closed
	safe    time.Time     // until when no other replica can have it; owned by renew
}

// KeyOf returns the key of a value that any text names.
func KeyOf(prefix, text string) string {
	sum := sha256.Sum256([]byte(text))
	return prefix + "." + hex.EncodeToString(sum[:16])
}

// TryHold takes a lease if no replica holds it. Otherwise, lease is nil and holder the name of the
// replica that has it. name must not be empty.
func TryHold(ctx context.Context, v Values, key, name string) (lease *Lease, holder string, err error) {
	for {
		lease, holder, err = tryHoldOnce(ctx, v, key, name)
		if !errors.Is(err, ErrStale) {
			return lease, holder, err
		}
	}
}

// tryHoldOnce is TryHold, except that it returns ErrStale if the value has changed between two
// requests.
func tryHoldOnce(ctx context.Context, v Values, key, name string) (lease *Lease, holder string, err error) {
	held, version, err := v.Get(ctx, key)
	if err != nil {
		return nil, "", err
	}
	if held != nil {
		return nil, holderOf(held), nil
	}
	l := &Lease{values: v, key: key, value: []byte(name + " " + rand.Text()), done: make(chan struct{}), safe: time.Now().Add(LeaseLife - leaseMargin)}
	l.version, err = v.Put(ctx, key, l.value, version, LeaseLife)
	if err != nil { // ErrStale: another replica was faster, or an old lease was removed meanwhile
		return nil, "", err
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.renew()
	return l, name, nil
}

// holderOf returns the name in the value of a lease.
func holderOf(value []byte) string {
	name, _, _ := strings.Cut(string(value), " ")
	return name
}

// Hold takes a lease, and waits for it while another replica holds it.
func Hold(ctx context.Context, v Values, key, name string) (*Lease, error) {
	for {
		lease, _, err := TryHold(ctx, v, key, name)
		if lease != nil || err != nil {
			return lease, err
		}
		if err := timeout.Sleep(ctx, leaseWait); err != nil {
			return nil, err
		}
	}
}

// Context returns a context that ends with the lease.
func (l *Lease) Context() context.Context { return l.ctx }

// renew renews the lease until it is released, or lost. After an error that does not tell whether
// it is lost, it tries again until the lease could have ended, counted from the beginning of the
// last Put that has succeeded.
func (l *Lease) renew() {
	defer close(l.done)
	defer l.cancel()
	tick := time.NewTicker(LeaseRenewal)
	defer tick.Stop()
	for l.renewOnce(tick.C) {
	}
}

// renewOnce waits for the next tick and renews the lease. It returns false if the lease has ended.
func (l *Lease) renewOnce(tick <-chan time.Time) bool {
	ctx, cancel := context.WithDeadline(l.ctx, l.safe)
	defer cancel()
	select {
	case <-ctx.Done():
		return false
	case <-tick:
	}
	began := time.Now()
	version, err := l.values.Put(ctx, l.key, l.value, l.version, LeaseLife)
	if err == nil {
		l.version, l.safe = version, began.Add(LeaseLife-leaseMargin)
		return true
	}
	return l.adopt(ctx, err) && ctx.Err() == nil
}

// adopt reports whether the lease may still be held after a failed renewal. The renewal may have
// been stored although its acknowledgement is missing.
func (l *Lease) adopt(ctx context.Context, failed error) bool {
	if !errors.Is(failed, ErrStale) {
		return true
	}
	held, version, err := l.values.Get(ctx, l.key)
	if err != nil {
		return true
	}
	if string(held) != string(l.value) {
		return false
	}
	l.version = version
	return true
}

// Release ends the lease, so that another replica can take it at once. If the store does not
// answer, the lease ends by itself.
func (l *Lease) Release() {
	l.cancel()
	<-l.done
	ctx, cancel := context.WithTimeout(context.Background(), LeaseRenewal)
	defer cancel()
	_, err := l.values.Put(ctx, l.key, nil, l.version, time.Second)
	if !errors.Is(err, ErrStale) {
		return
	}
	// A renewal that Release has interrupted may have been stored.
	if held, version, err := l.values.Get(ctx, l.key); err == nil && string(held) == string(l.value) {
		_, _ = l.values.Put(ctx, l.key, nil, version, time.Second)
	}
}

// Holder returns the name of the replica that holds a lease, or "".
func Holder(ctx context.Context, v Values, key string) (string, error) {
	held, _, err := v.Get(ctx, key)
	return holderOf(held), err
}
