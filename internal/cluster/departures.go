package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// departures are the replicas whose leases have ended. The lock of the cluster guards them.
type departures struct {
	unsure      map[string]bool // replicas whose end the store has not confirmed yet
	isAsking    bool            // the store is being asked
	wasFollowed bool            // this process knew at the last tick which replicas are gone
	hooks       hooks           // of OnGone
}

// OnGone calls f, on a goroutine of its own, when replicas are gone for IsGone of the tasks. It
// also calls f when this process has not known for a time which replicas are gone, and knows it
// again. Calls end with forget.
func (c *Cluster) OnGone(f func()) (forget func()) {
	return c.addHook(&c.departures.hooks, f)
}

// removeMember forgets a replica whose lease has ended. c.mu is held.
func (c *Cluster) removeMember(name string) {
	delete(c.members, name)
	if c.departures.unsure == nil {
		c.departures.unsure = map[string]bool{}
	}
	c.departures.unsure[name] = true
}

// noteThere notes that a replica has renewed its lease. c.mu is held.
func (c *Cluster) noteThere(name string) {
	delete(c.departures.unsure, name)
}

// noteFollowing calls the hooks when this process knows again which replicas are gone. It is called
// at each tick.
func (c *Cluster) noteFollowing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.departures
	if now := c.isFollowing(); now != d.wasFollowed {
		if d.wasFollowed = now; now {
			d.callHooks()
		}
	}
}

func (d *departures) callHooks() {
	for _, f := range d.hooks {
		go f()
	}
}

// confirmDepartures asks the store whether the replicas are gone whose leases have ended, and calls
// the hooks. An answer that is missing is asked for again at the next tick.
func (c *Cluster) confirmDepartures() {
	c.mu.Lock()
	names := slices.Collect(maps.Keys(c.departures.unsure))
	isDue := len(names) > 0 && !c.departures.isAsking
	if isDue {
		c.departures.isAsking = true
	}
	c.mu.Unlock()
	if !isDue || !c.startWork() {
		return
	}
	go func() {
		defer c.running.Done()
		var gone []string
		for _, name := range names {
			if c.isGoneMember(name) {
				gone = append(gone, name)
			}
		}
		c.noteGone(gone)
	}()
}

// noteGone notes replicas that are gone, and calls the hooks.
func (c *Cluster) noteGone(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, news := &c.departures, false
	d.isAsking = false
	for _, name := range names {
		if !d.unsure[name] {
			continue // it is there again
		}
		delete(d.unsure, name)
		news = true
	}
	if news {
		d.callHooks()
	}
}

// isFollowing reports whether this process has received all renewals of leases for so long that a
// lease without one has ended. c.mu is held.
func (c *Cluster) isFollowing() bool {
	now := time.Now()
	return !c.followedSince.IsZero() && now.Sub(c.followedSince) >= replica.LeaseLife && now.Sub(c.members[c.id].seen) < replica.LeaseLife
}
