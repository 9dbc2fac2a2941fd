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

// clientConn returns the connection of one client. It opens one if the client has none: see
// [connection.awaitOpen]. A nil login means the login of the definition. u.mu is held.
func (u *Upstream) clientConn(key string, login *http.Client) (*connection, error) {
	if conn := u.clientConns[key]; conn != nil {
		return conn, nil
	}
	if len(u.clientConns) >= maxClientConns && !u.evictIdlest() {
		return nil, fmt.Errorf("%s already has %d client connections, which is the maximum: try again after a client has left", u.name, maxClientConns)
	}
	conn := newConnection()
	conn.opened, conn.evicted = make(chan struct{}), make(chan struct{})
	u.clientConns[key] = conn
	down := u.changed
	u.connWork.Go(func() { u.runClientConn(key, login, conn, down) }) // the connection outlives the call that opens it
	return conn, nil
}

// awaitOpen waits until the connection is open. It ends the counted call if it fails.
func (conn *connection) awaitOpen(ctx context.Context) (err error) {
	if conn.opened == nil {
		return nil // the shared connection
	}
	select {
	case <-conn.opened:
		err = conn.openErr
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.endCall()
	}
	return err
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
	u.watchClientConn(key, conn, down)
	u.removeClientConn(key, conn)
	conn.markReplaced()
	conn.client.Close()
}

// watchClientConn waits until the connection must end.
func (u *Upstream) watchClientConn(key string, conn *connection, down <-chan struct{}) {
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
			if u.removeIdleConn(key, conn) {
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

// removeIdleConn removes a connection if it is idle, so that no call gets it any more, and reports
// whether it is.
func (u *Upstream) removeIdleConn(key string, conn *connection) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if conn.idleTime() < u.hub.opts.ClientIdle {
		return false
	}
	if u.clientConns[key] == conn {
		delete(u.clientConns, key)
	}
	return true
}

// areClientConnsIdle reports whether all connections of single clients, and the upstream itself,
// have been without a call for at least limit. u.mu is held.
func (u *Upstream) areClientConnsIdle(limit time.Duration) bool {
	for _, conn := range u.clientConns {
		if conn.idleTime() < limit {
			return false
		}
	}
	return time.Since(u.lastUsed) >= limit
}
