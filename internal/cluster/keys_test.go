package cluster_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

func opens(in *cluster.Cluster, sealed string) bool {
	_, err := in.Keys().For("test").Open(sealed, nil)
	return err == nil
}

// Replicas that start at the same time have the same keys.
func TestReplicasShareKeys(t *testing.T) {
	url := natstest.Start(t, nil).ClientURL()
	all := make([]*cluster.Cluster, 4)
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i] = open(t, url) })
	}
	starting.Wait()
	for _, from := range all {
		sealed := from.Keys().For("test").Seal([]byte("x"), nil)
		for _, to := range all {
			if !opens(to, sealed) {
				t.Error("a replica does not open what another has sealed")
			}
		}
	}
	other := open(t, url+"/other")
	if opens(other, all[0].Keys().For("test").Seal([]byte("x"), nil)) {
		t.Error("a cluster of another name has the same keys")
	}
}

// While the keys are exchanged, every replica opens at every moment what any of them seals.
func TestRotateKeys(t *testing.T) {
	one, two := openTwo(t)
	polltest.Until(t, "the replicas know each other", func() bool { return one.State().Replicas == 2 && two.State().Replicas == 2 })
	before := one.Keys().For("test").Seal([]byte("x"), nil)
	stop, checked := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				checked <- n
				return
			default:
			}
			for _, pair := range [][2]*cluster.Cluster{{one, two}, {two, one}} {
				if !opens(pair[1], pair[0].Keys().For("test").Seal([]byte("x"), nil)) {
					t.Error("a replica does not open what another has sealed")
				}
			}
		}
	}()
	if err := one.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "both seal with the new key", func() bool {
		s1, s2 := one.State().Keys, two.State().Keys
		return s1 == s2 && len(s1) > 20 && s1[len(s1)-len("older accepted"):] == "older accepted"
	})
	close(stop)
	if n := <-checked; n == 0 {
		t.Error("nothing was sealed meanwhile")
	}
	if !opens(two, before) {
		t.Error("what was sealed before does not open")
	}
	late := open(t, one.State().Server+"/")
	if !opens(late, before) || !opens(late, two.Keys().For("test").Seal([]byte("x"), nil)) {
		t.Error("a replica that joins later has other keys")
	}
}

// A secret that has ceased to seal is retired after its life, and not before, at every replica.
func TestKeysAreRetired(t *testing.T) {
	t.Parallel()
	const keyLife = 3 * time.Second
	url := natstest.Start(t, nil).ClientURL()
	var all []*cluster.Cluster
	for range 2 {
		c, err := cluster.Open(t.Context(), cluster.Options{URL: url, KeyLife: keyLife, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		all = append(all, c)
	}
	before := all[0].Keys().For("test").Seal([]byte("x"), nil)
	end := time.Now().Truncate(time.Second).Add(keyLife) // replicas store the time in whole seconds
	if err := all[0].RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the old key is retired", func() bool {
		left := 0
		for i, c := range all {
			if opens(c, before) {
				left++
			} else if early := time.Until(end); early > 0 {
				t.Fatalf("replica %d has retired the old key %v too early", i, early)
			}
		}
		return left == 0
	})
	for i, c := range all {
		if !opens(c, all[1-i].Keys().For("test").Seal([]byte("x"), nil)) {
			t.Errorf("replica %d does not open what the other seals", i)
		}
	}
}
