package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/nats-io/nats.go/jetstream"
)

// memberLease is the entry of a process. It vanishes when it was not
// renewed for [replica.LeaseLife].
type memberLease struct {
	KeysSeen uint64 `json:"keysSeen"`          // the revision of the keys that the process accepts
	HasLeft  bool   `json:"hasLeft,omitempty"` // the process has ended in order
}

// member is a replica as this process knows it.
type member struct {
	lease    memberLease
	revision uint64    // of its last renewal
	seen     time.Time // when its last renewal has arrived
}

const memberPrefix = "member."

// renewLease tells the other replicas that this process is there, and which keys it accepts.
func (c *Cluster) renewLease(ctx context.Context) error {
	own, began, reconnects := memberLease{KeysSeen: c.keysSeen().revision}, time.Now(), c.conn.Stats().Reconnects
	err := c.publishLease(ctx, own)
	if isBack := c.noteRenewal(own, began, reconnects, err); isBack && c.startWork() {
		go func() {
			defer c.running.Done()
			c.callHealed()
		}()
	}
	return err
}

// noteRenewal notes the result of a renewal. isBack reports that the renewals before have failed on
// the same connection. Then messages may be lost, too: the NATS server may have been cut off from
// the others, or the one that was to send them has ended.
func (c *Cluster) noteRenewal(own memberLease, began time.Time, reconnects uint64, err error) (isBack bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isBack = err == nil && c.leaseErr != nil && reconnects == c.renewedOn
	if c.leaseErr = err; err != nil {
		c.followedSince = time.Time{}
		return false
	}
	known := c.members[c.id]
	known.lease = own
	c.members[c.id], c.renewed, c.renewedOn = known, began, reconnects
	return isBack
}

// holdLease renews the lease if it may have ended, as after a time in which this process was
// stopped. A process without a lease must not begin a task, because other replicas take its tasks
// over.
func (c *Cluster) holdLease(ctx context.Context) error {
	c.mu.Lock()
	isHeld := time.Since(c.renewed) < replica.LeaseLife-replica.LeaseRenewal
	c.mu.Unlock()
	if isHeld {
		return nil
	}
	// A client that cancels its request must not make the lease count as not renewed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return c.renewLease(ctx)
}

func (c *Cluster) publishLease(ctx context.Context, l memberLease) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = c.js.Publish(ctx, "$KV."+c.bucketName()+"."+memberPrefix+c.id, data, jetstream.WithMsgTTL(replica.LeaseLife))
	return err
}

// noteDisconnected notes that renewals of other replicas may be missed from now on.
func (c *Cluster) noteDisconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followedSince = time.Time{}
}

// renewPause is the time between two tries to renew the lease when the connection is back:
// JetStream may start after the connection.
const renewPause = 250 * time.Millisecond

// renewAfterLoss renews the lease when the connection is there again, and does not wait for the
// next renewal that is due.
func (c *Cluster) renewAfterLoss() {
	if !c.startWork() {
		return
	}
	go func() {
		defer c.running.Done()
		ctx, cancel := context.WithTimeout(c.ctx, replica.LeaseRenewal)
		defer cancel()
		for c.checkConnected() == nil && c.renewLease(ctx) != nil {
			if timeout.Sleep(ctx, renewPause) != nil {
				return // the next renewal that is due tries again
			}
		}
	}()
}

// leave ends the lease.
func (c *Cluster) leave() {
	if c.state == nil || c.checkConnected() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	_ = c.publishLease(ctx, memberLease{HasLeft: true}) // it ends by itself otherwise
}

// follow applies changes of the keys and of the leases, renews the own lease, and advances a
// rotation, until the cluster is closed.
func (c *Cluster) follow(first jetstream.KeyWatcher) {
	watch := newStateWatch(first)
	defer func() { _ = watch.Stop() }() // of the last one
	renew := time.NewTicker(replica.LeaseRenewal)
	defer renew.Stop()
	for {
		news := false // of this process, for the others
		select {
		case <-c.ctx.Done():
			return
		case entry, ok := <-watch.updates:
			if !ok {
				watch.updates = nil
				continue
			}
			news = c.applyEntry(entry)
		case next := <-watch.opened:
			c.replaceWatch(watch, next)
		case <-renew.C:
			news = true
			c.keepWatching(watch)
			c.dropLost()
			c.noteFollowing()
		}
		c.confirmDepartures()
		c.doDuties(news)
	}
}

// missesRenewal reports whether a renewal of this process was stored and has not come back.
func (c *Cluster) missesRenewal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaseErr == nil && time.Since(c.renewed) >= replica.LeaseRenewal/2 && c.members[c.id].seen.Before(c.renewed)
}

// doDuties renews the lease if news is set, and does what is due for the keys.
func (c *Cluster) doDuties(news bool) {
	if c.checkConnected() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	if news {
		if err := c.renewLease(ctx); err != nil && c.ctx.Err() == nil {
			c.opts.Logger.Warn("the lease of this replica could not be renewed", "cluster", c.name, "err", err)
		}
	}
	if err := c.advanceKeys(ctx); err != nil && c.ctx.Err() == nil {
		c.opts.Logger.Warn("the shared keys could not be changed", "cluster", c.name, "err", err)
	}
}

// applyEntry takes over an entry of the bucket. It reports whether the keys have changed.
func (c *Cluster) applyEntry(entry jetstream.KeyValueEntry) (keysChanged bool) {
	if entry == nil { // all entries of the beginning were sent
		return false
	}
	name, isMember := strings.CutPrefix(entry.Key(), memberPrefix)
	switch {
	case entry.Key() == keysEntry && entry.Operation() == jetstream.KeyValuePut:
		if err := c.applyKeys(entry.Value(), entry.Revision()); err != nil {
			c.opts.Logger.Error("the shared keys of the cluster are not usable", "cluster", c.name, "err", err)
		}
		return true
	case isMember:
		c.applyLease(name, entry)
	}
	return false
}

// applyLease takes over the lease of a replica. The end of a lease alone says nothing: after an
// outage of the NATS server all leases have ended. A new watch begins with the leases that are
// stored. A lease that the watch before has brought is no renewal.
func (c *Cluster) applyLease(name string, entry jetstream.KeyValueEntry) {
	var lease memberLease
	isThere := entry.Operation() == jetstream.KeyValuePut && json.Unmarshal(entry.Value(), &lease) == nil
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.members[name].revision == entry.Revision():
	case name == c.id:
		c.noteOwnRenewal(isThere, entry.Revision())
	case isThere && !lease.HasLeft:
		c.members[name] = member{lease, entry.Revision(), time.Now()}
		c.noteThere(name)
	case isThere || c.isLost(name):
		c.removeMember(name)
	}
}

// noteOwnRenewal notes that a renewal of this process has come back. Then the renewals of others
// arrive, too. c.mu is held.
func (c *Cluster) noteOwnRenewal(isThere bool, revision uint64) {
	now, own := time.Now(), c.members[c.id]
	switch {
	case !isThere || !c.conn.IsConnected():
		c.followedSince = time.Time{}
	case c.followedSince.IsZero() || now.Sub(own.seen) >= replica.LeaseLife:
		c.followedSince = now
	}
	own.seen, own.revision = now, revision
	c.members[c.id] = own
}

// dropLost forgets the replicas whose leases have ended.
func (c *Cluster) dropLost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.members {
		if c.isLost(name) {
			c.removeMember(name)
		}
	}
}

// isLost reports whether no renewal of a replica has arrived for the life of a lease, although the
// renewals of this process have. If its own are missing too, the cause may be an outage. c.mu is
// held.
func (c *Cluster) isLost(name string) bool {
	return name != c.id && c.isFollowing() && time.Since(c.members[name].seen) >= replica.LeaseLife
}

// isGoneMember reports whether a process has ended, or was cut off from the cluster for the life of
// a lease.
func (c *Cluster) isGoneMember(name string) bool {
	if name == c.id || c.checkConnected() != nil {
		return false
	}
	c.mu.Lock()
	isLost := c.isLost(name)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	entry, err := c.state.Get(ctx, memberPrefix+name)
	if err != nil {
		return isLost && errors.Is(err, jetstream.ErrKeyNotFound)
	}
	var lease memberLease
	return json.Unmarshal(entry.Value(), &lease) == nil && lease.HasLeft
}

// allHaveSeen reports whether every replica accepts the keys of a revision.
func (c *Cluster) allHaveSeen(revision uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.lease.KeysSeen < revision {
			return false
		}
	}
	return true
}
