package sharedserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// ownerConn is a connection to the owner of a server. Its loss says nothing about the server, so it
// counts as no failure of the server, and another dial follows as soon as the lease is free or the
// owner can be used.
type ownerConn struct {
	*conn
	server     *server
	hasSession bool // the owner has a session at the server, not a process
}

// Read implements [transport.Conn].
func (c ownerConn) Read() ([]byte, error) {
	frame, err := c.conn.Read()
	if err == nil || errors.Is(err, io.EOF) { // this end has closed it
		return frame, err
	}
	if !IsReleased(err) { // the owner may have stopped the server for a reason
		c.server.awaitOwner(ownerFailure{holder: c.peer})
	}
	if c.hasSession {
		err = c.explainLoss(err)
	}
	return nil, errNoOwner{err}
}

// explainLoss says what became of the session.
func (c ownerConn) explainLoss(err error) error {
	if c.isOver(err) {
		return fmt.Errorf("%w: the session at the server %s is lost, with all that the server kept in it; a call in flight may have had its effect. "+
			"Subscriptions go on, and new calls work, when a replica has opened another session, within %v", err, c.server.name, replica.LeaseLife)
	}
	return fmt.Errorf("%w: the session at the server %s goes on if its owner does; a call in flight may have had its effect. "+
		"New calls work when this replica reaches the owner again, or a replica has opened another session", err, c.server.name)
}

// holderTimeout bounds the look at the lease after a loss. Without an answer, the session counts as
// kept.
const holderTimeout = 500 * time.Millisecond

// isOver reports whether the session has ended with its connection: the owner has ended, or has
// lost its lease.
func (c ownerConn) isOver(lost error) bool {
	if _, gone := errors.AsType[errGone](lost); gone || IsReleased(lost) {
		return true
	}
	ctx, cancel := context.WithTimeout(c.pool.ctx, holderTimeout)
	defer cancel()
	holder, err := replica.Holder(ctx, c.pool.opts.Values, c.server.key())
	return err == nil && holder != c.peer
}
