package replica

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowValues store at once and acknowledge after delay. After the first value they store nothing
// more.
type slowValues struct {
	Values
	delay time.Duration

	mu     sync.Mutex
	stored time.Time
}

func (v *slowValues) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, nil }

func (v *slowValues) Put(ctx context.Context, _ string, _ []byte, version uint64, _ time.Duration) (uint64, error) {
	v.mu.Lock()
	isFirst := v.stored.IsZero()
	if isFirst {
		v.stored = time.Now()
	}
	v.mu.Unlock()
	select {
	case <-time.After(v.delay):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if !isFirst {
		return 0, ErrUnreachable
	}
	return version + 1, nil
}

// The holder of a lease that cannot be renewed knows that it is lost before another replica can
// have it, however long the acknowledgements take.
func TestLeaseIsLostInTime(t *testing.T) {
	for _, delay := range []time.Duration{0, 1900 * time.Millisecond, 3 * time.Second, 4900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			v := &slowValues{delay: delay}
			lease, _, err := TryHold(t.Context(), v, "lease.a", "me")
			if err != nil {
				t.Fatal(err)
			}
			<-lease.Context().Done()
			if held := time.Since(v.stored); held >= LeaseLife {
				t.Errorf("with acknowledgements after %v, it is lost after %v", delay, held)
			}
			<-lease.done
		})
	}
}

// lateValues store at once and acknowledge a renewal never.
type lateValues struct {
	Values
	mu      sync.Mutex
	value   []byte
	version uint64
}

func (v *lateValues) Get(context.Context, string) ([]byte, uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.value, v.version, nil
}

func (v *lateValues) Put(ctx context.Context, _ string, value []byte, version uint64, _ time.Duration) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version != v.version {
		return 0, ErrStale
	}
	isRenewal := v.value != nil && value != nil
	v.value, v.version = value, v.version+1
	if isRenewal {
		v.mu.Unlock()
		<-ctx.Done()
		v.mu.Lock()
		return 0, context.Cause(ctx)
	}
	return v.version, nil
}

// A lease that is released while it is being renewed is free at once.
func TestReleaseDuringRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &lateValues{}
		lease, _, err := TryHold(t.Context(), v, "lease.a", "me")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(LeaseRenewal) // of the bubble's clock
		synctest.Wait()
		lease.Release()
		if holder, _ := Holder(t.Context(), v, "lease.a"); holder != "" {
			t.Errorf("it is held by %q", holder)
		}
	})
}
