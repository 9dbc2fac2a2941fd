package memstore

import (
	"container/list"
	"context"
	"runtime"
	"weak"

	"github.com/dowel-mcp/dowel/internal/quota"
)

// clientEvents are the events of one client. Their bytes are a cache of the quota: it takes them
// back as soon as messages that wait need the room.
type clientEvents struct {
	store  *Events
	client quota.Client
	lease  *quota.Lease // nil counts nothing

	// All of these are guarded by store.mu.
	byAge   list.List // of *event, oldest first
	bytes   int
	counted int64 // bytes of the lease
}

// clientOf returns the events of the client that ctx names. m.mu is held.
func (m *Events) clientOf(ctx context.Context) *clientEvents {
	client := quota.ClientOf(ctx, "", "")
	c := m.clients.Get(client)
	if c == nil {
		c = &clientEvents{store: m, client: client}
		c.lease = quota.Account{Quota: m.limits.Quota, Client: client}.NewCacheLease(weakEvents{weak.Make(c)})
		runtime.AddCleanup(c, (*quota.Lease).Release, c.lease)
		m.clients.Put(client, c)
	}
	return c
}

// removeClient removes a client from the map. m.mu is held.
func (m *Events) removeClient(c *clientEvents) {
	if m.clients.Get(c.client) == c {
		m.clients.Delete(c.client)
	}
}

// weakEvents is the [quota.Waiter] of a client's events. The quota must not keep the store of an
// endpoint that is no longer used, which has no Close.
type weakEvents struct{ events weak.Pointer[clientEvents] }

// CutOff forgets the events, because others need the room.
func (w weakEvents) CutOff(error) {
	if c := w.events.Value(); c != nil {
		c.store.dropClient(c)
	}
}

// largestClient returns the client with the most bytes. m.mu is held.
func (m *Events) largestClient() (largest *clientEvents) {
	for c := range m.clients.Values() {
		if largest == nil || c.bytes > largest.bytes {
			largest = c
		}
	}
	return largest
}

// forgetClient removes a client without events. m.mu is held.
func (m *Events) forgetClient(c *clientEvents) {
	m.removeClient(c)
	c.lease.Release()
}

// count counts the bytes of a client in the quota. While they exceed a limit, it forgets the
// client's oldest event. If none is left, it returns the [quota.LimitError]. m.mu is held.
func (m *Events) count(c *clientEvents) error {
	for {
		err := c.resizeLease()
		if err == nil {
			return nil
		}
		if c.byAge.Len() <= 1 {
			c.forgetAll()
			return err
		}
		m.forgetOldest(c.oldest())
	}
}

// resizeLease makes the lease as large as the events, in steps, so that the usual small event does
// not need the quota. store.mu is held.
func (c *clientEvents) resizeLease() error {
	const step = quota.Uncounted
	bytes := int64(c.bytes / step * step)
	if bytes == c.counted {
		return nil
	}
	if err := c.lease.Resize(bytes); err != nil {
		return err
	}
	c.counted = bytes
	return nil
}

func (c *clientEvents) oldest() *event { return c.byAge.Front().Value.(*event) }

// addEvent adds the newest event. store.mu is held.
func (c *clientEvents) addEvent(e *event) {
	e.ofClient = c.byAge.PushBack(e)
	c.bytes += e.memorySize()
}

// removeEvent removes an event. store.mu is held.
func (c *clientEvents) removeEvent(e *event) {
	c.byAge.Remove(e.ofClient)
	c.bytes -= e.memorySize()
}

// forgetAll forgets all events of the client. store.mu is held.
func (c *clientEvents) forgetAll() {
	for c.byAge.Len() > 0 {
		c.store.forgetOldest(c.oldest())
	}
}

// dropClient forgets the events of a client after the quota has taken back their room.
func (m *Events) dropClient(c *clientEvents) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.forgetAll()
	m.removeClient(c) // its lease counts no more
}
