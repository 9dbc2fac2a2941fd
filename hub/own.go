package hub

import (
	"context"
	"fmt"
	"time"
)

// maxClientConns bounds the connections that clients have of their own to one upstream.
const maxClientConns = 64

// clientConn returns the connection of one client, and opens it where there is none yet.
func (u *Upstream) clientConn(ctx context.Context, key string) (*connection, error) {
	in, err := u.reserveClientConn(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-in.opened:
		return in, in.openErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reserveClientConn returns the instance of a key, which is being opened where there was none.
func (u *Upstream) reserveClientConn(key string) (*connection, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	in := u.clientConns[key]
	switch {
	case u.sharedConn == nil:
		return nil, &DownError{u.name, u.state}
	case in != nil:
		return in, nil
	case len(u.clientConns) >= maxClientConns && !u.evictIdlest():
		return nil, fmt.Errorf("%d clients have a process of %s of their own already: wait for one to leave", maxClientConns, u.name)
	}
	in = newConnection()
	in.opened, in.evicted = make(chan struct{}), make(chan struct{})
	u.clientConns[key] = in
	down := u.changed
	u.connWork.Go(func() { u.runClientConn(key, in, down) }) // it outlives the call that needs it first
	return in, nil
}

// evictIdlest ends the connection that has been idle longest, to make room; false where all are in use. u.mu is held.
func (u *Upstream) evictIdlest() bool {
	var oldest string
	var longest time.Duration
	for key, in := range u.clientConns {
		if idle := in.idleTime(); idle > longest {
			oldest, longest = key, idle
		}
	}
	in := u.clientConns[oldest]
	if in == nil {
		return false
	}
	delete(u.clientConns, oldest)
	in.evict()
	return true
}

// runClientConn connects, and ends the connection when it is lost or idle, or the upstream is not ready any more.
func (u *Upstream) runClientConn(key string, in *connection, down <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), u.startTimeout())
	stop := make(chan struct{})
	go func() {
		select {
		case <-down:
		case <-stop:
		}
		cancel()
	}()
	opened, err := u.openConn(ctx)
	close(stop)
	if err != nil {
		in.openErr = &DownError{u.name, State{Status: Failed, Err: err, Cause: err.Error()}}
		u.removeClientConn(key, in)
		close(in.opened)
		return
	}
	in.mu.Lock()
	in.upstream, in.client, in.lost, in.lastUsed = u, opened.client, opened.lost, time.Now()
	in.mu.Unlock()
	close(in.opened)
	u.watchClientConn(in, down)
	u.removeClientConn(key, in)
	in.markReplaced()
	in.client.Close()
}

// watchClientConn waits until the connection is of no use any more.
func (u *Upstream) watchClientConn(in *connection, down <-chan struct{}) {
	idle := u.hub.opts.ClientIdle
	look := time.NewTicker(max(idle/4, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-down:
			return
		case <-in.lost:
			return
		case <-in.evicted:
			return
		case <-look.C:
			if in.idleTime() >= idle {
				return
			}
		}
	}
}

func (u *Upstream) removeClientConn(key string, in *connection) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.clientConns[key] == in {
		delete(u.clientConns, key)
	}
}

// clientConnsIdle reports whether no client's own connection has been used for so long.
func (u *Upstream) clientConnsIdle(limit time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, in := range u.clientConns {
		if in.idleTime() < limit {
			return false
		}
	}
	return time.Since(u.lastUsed) >= limit
}
