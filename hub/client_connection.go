package hub

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// maxClientConns limits the connections to one upstream that belong to a single client each.
const maxClientConns = 64

// clientConn returns the connection of one client. It opens one if the client has none, and waits
// for it. A nil login means the login of the definition.
func (u *Upstream) clientConn(ctx context.Context, key string, login *http.Client) (*connection, error) {
	conn, err := u.reserveClientConn(key, login)
	if err != nil {
		return nil, err
	}
	select {
	case <-conn.opened:
		return conn, conn.openErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reserveClientConn returns the connection of a key. If it is new, it is still opening.
func (u *Upstream) reserveClientConn(key string, login *http.Client) (*connection, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	conn := u.clientConns[key]
	switch {
	case u.sharedConn == nil:
		return nil, &DownError{u.name, u.state}
	case conn != nil:
		return conn, nil
	case len(u.clientConns) >= maxClientConns && !u.evictIdlest():
		return nil, fmt.Errorf("%s already has %d client connections, which is the maximum: try again after a client has left", u.name, maxClientConns)
	}
	conn = newConnection()
	conn.opened, conn.evicted = make(chan struct{}), make(chan struct{})
	u.clientConns[key] = conn
	down := u.changed
	u.connWork.Go(func() { u.runClientConn(key, login, conn, down) }) // the connection outlives the call that opens it
	return conn, nil
}

// evictIdlest ends the connection that has been idle longest. It reports false if all are in use.
// u.mu is held.
func (u *Upstream) evictIdlest() bool {
	var oldest string
	var longest time.Duration
	for key, conn := range u.clientConns {
		if idle := conn.idleTime(); idle > longest {
			oldest, longest = key, idle
		}
	}
	conn := u.clientConns[oldest]
	if conn == nil {
		return false
	}
	delete(u.clientConns, oldest)
	conn.evict()
	return true
}

// runClientConn opens a connection and keeps it until it is lost, idle or evicted, or the upstream
// is not ready any more. down is closed at the next change of the upstream's state.
func (u *Upstream) runClientConn(key string, login *http.Client, conn *connection, down <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) // the dial has limits of its own
	stop := make(chan struct{})
	go func() {
		select {
		case <-down:
		case <-stop:
		}
		cancel()
	}()
	opened, err := u.openConn(ctx, login)
	close(stop)
	if err != nil {
		d := u.Definition()
		conn.openErr = err
		if httpwire.AsRefusal(err) != nil { // it concerns the client alone
			u.hub.opts.Logger.Warn("a client cannot log in", "server", u.name, "error", d.maskText(err.Error()))
		} else {
			conn.openErr = &DownError{u.name, State{Status: Failed, Err: err, Cause: err.Error()}}
		}
		u.removeClientConn(key, conn)
		close(conn.opened)
		return
	}
	conn.mu.Lock()
	conn.upstream, conn.client, conn.router, conn.lost, conn.lastUsed = u, opened.client, opened.router, opened.lost, time.Now()
	conn.mu.Unlock()
	close(conn.opened)
	u.watchClientConn(conn, down)
	u.removeClientConn(key, conn)
	conn.markReplaced()
	conn.client.Close()
}

// watchClientConn waits until the connection must end.
func (u *Upstream) watchClientConn(conn *connection, down <-chan struct{}) {
	idle := u.hub.opts.ClientIdle
	check := time.NewTicker(max(idle/4, time.Millisecond))
	defer check.Stop()
	for {
		select {
		case <-down:
			return
		case <-conn.lost:
			return
		case <-conn.evicted:
			return
		case <-check.C:
			if conn.idleTime() >= idle {
				return
			}
		}
	}
}

// removeClientConn removes a connection unless another one has taken its key.
func (u *Upstream) removeClientConn(key string, conn *connection) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.clientConns[key] == conn {
		delete(u.clientConns, key)
	}
}

// clientConnsIdle reports whether all connections of single clients, and the upstream itself, have
// been without a call for at least limit.
func (u *Upstream) clientConnsIdle(limit time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, conn := range u.clientConns {
		if conn.idleTime() < limit {
			return false
		}
	}
	return time.Since(u.lastUsed) >= limit
}
