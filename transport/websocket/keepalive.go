package websocket

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pongTimeout bounds how long the peer may be silent after a ping. It is a variable for tests.
var pongTimeout = 20 * time.Second

// keepAlive sends a ping when the peer is silent, and fails the connection if it stays silent. It
// holds a timer and no goroutine. The zero value does nothing.
type keepAlive struct {
	interval time.Duration
	began    time.Time
	lastSign atomic.Int64 // when bytes of the peer were received last, as a time.Duration since began

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	checks  sync.WaitGroup
}

// startKeepAlive starts the pings of a connection. A negative interval disables them.
func (c *conn) startKeepAlive(interval time.Duration) {
	if interval < 0 {
		return
	}
	k := &c.keepAlive
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interval, k.began = interval, time.Now()
	k.timer = time.AfterFunc(interval, c.checkPeer)
}

// noteSign records that the peer has sent something.
func (k *keepAlive) noteSign() {
	if k.interval > 0 {
		k.lastSign.Store(int64(time.Since(k.began)))
	}
}

// silence returns for how long the peer has sent nothing.
func (k *keepAlive) silence() time.Duration {
	return time.Since(k.began) - time.Duration(k.lastSign.Load())
}

// checkPeer sends a ping if the peer is silent, and starts the timer again.
func (c *conn) checkPeer() {
	k := &c.keepAlive
	if !k.beginCheck() {
		return
	}
	defer k.checks.Done()
	wait := k.interval - k.silence()
	if wait <= 0 {
		if !c.pingPeer() {
			c.fail("the %s has not answered a ping within %v", c.peer, pongTimeout)
			return
		}
		wait = k.interval
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.timer.Reset(wait)
	}
}

// beginCheck reports whether a check may run. The caller calls checks.Done after it.
func (k *keepAlive) beginCheck() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.checks.Add(1)
	}
	return !k.stopped
}

// pingPeer reports whether the peer is alive: it answers a ping, or sends something else. While a
// message is written, it sends no ping, because Write detects a peer that does not read.
func (c *conn) pingPeer() bool {
	if !c.writing.TryLock() {
		return true
	}
	c.writing.Unlock()
	asked := time.Now()
	ctx, cancel := context.WithTimeout(c.life, pongTimeout)
	defer cancel()
	err := c.socket.Ping(ctx)
	if err == nil {
		c.keepAlive.noteSign()
		return true
	}
	return c.keepAlive.silence() < time.Since(asked)
}

// stopPings ends the pings and waits for one that is in progress. The connection must have ended.
func (k *keepAlive) stopPings() {
	k.mu.Lock()
	k.stopped = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.mu.Unlock()
	k.checks.Wait()
}
