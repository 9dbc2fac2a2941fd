package cluster_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// Of replicas that change a value at the same time, each sees what the others have stored. Watchers
// hear of it.
func TestValues(t *testing.T) {
	one, two := openTwo(t)
	changed := make(chan string, 1000)
	stop, err := two.Values().Watch("n", func(key string) { changed <- key })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var adding sync.WaitGroup
	for _, c := range []replica.Values{one.Values(), two.Values()} {
		for range 2 {
			adding.Go(func() {
				for range 10 {
					err := replica.Update(t.Context(), c, "n.count", 0, func(value []byte) ([]byte, error) { return append(value, '1'), nil })
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	adding.Wait()
	value, version, err := two.Values().Get(t.Context(), "n.count")
	if len(value) != 40 || err != nil {
		t.Errorf("%d changes, %v", len(value), err)
	}
	for range 40 {
		if key := <-changed; key != "n.count" {
			t.Errorf("%q has changed", key)
		}
	}
	if _, err := one.Values().Put(t.Context(), "n.count", []byte("x"), version-1, 0); !errors.Is(err, replica.ErrStale) {
		t.Errorf("an old version: %v", err)
	}
	removed, err := one.Values().Put(t.Context(), "n.count", nil, version, 0)
	if err != nil {
		t.Fatal(err)
	}
	if value, version, err = two.Values().Get(t.Context(), "n.count"); value != nil || version != removed || err != nil {
		t.Errorf("after it was removed: %s, %d, %v", value, version, err)
	}
}

// A lease has one holder at a time. If the holder ends without a word, another one gets it when it
// expires.
func TestLease(t *testing.T) {
	one, two := openTwo(t)
	var holders atomic.Int32
	var working sync.WaitGroup
	for _, v := range []replica.Values{one.Values(), two.Values(), one.Values(), two.Values()} {
		working.Go(func() {
			for range 3 {
				lease, err := replica.Hold(t.Context(), v, "lease.a", "me")
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two hold the lease")
				}
				time.Sleep(5 * time.Millisecond)
				holders.Add(-1)
				lease.Release()
			}
		})
	}
	working.Wait()
	held, _, err := replica.TryHold(t.Context(), one.Values(), "lease.b", "one")
	if held == nil || err != nil {
		t.Fatal(err)
	}
	other, holder, err := replica.TryHold(t.Context(), two.Values(), "lease.b", "two")
	if other != nil || holder != "one" || err != nil {
		t.Errorf("%v holds it, %v", holder, err)
	}
	time.Sleep(replica.LeaseLife + replica.LeaseRenewal) // it is renewed
	if other, _, _ = replica.TryHold(t.Context(), two.Values(), "lease.b", "two"); other != nil {
		t.Error("a lease that is renewed has ended")
	}
	one.Close() // as if the process had been killed
	got, err := replica.Hold(t.Context(), two.Values(), "lease.b", "two")
	if err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the former holder notices", func() bool {
		select {
		case <-held.Context().Done():
			return true
		default:
			return false
		}
	})
	got.Release()
}

// A watcher is told when changes may have been missed.
func TestWatchAfterReconnect(t *testing.T) {
	start := natstest.Restartable(t)
	nats := start()
	c := open(t, nats.ClientURL())
	told := make(chan string, 10)
	stop, err := c.Values().Watch("n", func(key string) { told <- key })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	natstest.Stop(nats)
	start()
	if key := <-told; key != "" {
		t.Errorf("%q has changed", key)
	}
}
