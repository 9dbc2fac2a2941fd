package sharedserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

const (
	firstPartSize = 512 << 10 // of a frame; halved if the network takes less
	leastPartSize = 1 << 10
)

// sendRest sends the rest of the frame that is being sent, in parts. After an error it can be
// called again.
func (c *conn) sendRest(ctx context.Context) error {
	for len(c.rest) > 0 {
		size := min(len(c.rest), c.partSize)
		answer, err := c.sendMessage(ctx, message{Kind: framePart, Number: c.sent + 1, More: size < len(c.rest)}, c.rest[:size])
		switch {
		case errors.Is(err, replica.ErrTooLarge) && c.partSize > leastPartSize:
			c.partSize /= 2
		case err != nil:
			return err
		case bytes.Equal(answer, answerFull):
			if err := c.awaitRoom(ctx); err != nil {
				return err
			}
		default:
			c.sent++
			c.rest = c.rest[size:]
		}
	}
	return nil
}

// awaitRoom waits until the peer says that it has room. The message may be lost, so it waits no
// longer than until the peer should be asked again.
func (c *conn) awaitRoom(ctx context.Context) error {
	again := time.NewTimer(checkInterval)
	defer again.Stop()
	select {
	case <-c.room:
	case <-again.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// takePart adds a part to the frame that is being received.
func (c *conn) takePart(m message, data []byte) (answer []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Number <= c.got: // its acknowledgement was lost
		return nil, nil
	case m.Number > c.got+1, len(c.partial)+len(data) > maxFrame:
		err = fmt.Errorf("part %d of a message with %d bytes cannot follow part %d with %d", m.Number, len(data), c.got, len(c.partial))
		c.fail(err, false)
		return nil, err
	case m.More:
		c.partial, c.got = append(c.partial, data...), m.Number
		return nil, nil
	}
	if !c.in.offer(append(c.partial, data...)) {
		c.peerWaits = true
		return answerFull, nil
	}
	c.partial, c.got = nil, m.Number
	return nil, nil
}

// offerRoom tells a peer that waits that it may send again.
func (c *conn) offerRoom() {
	c.mu.Lock()
	tell := c.peerWaits && c.in.isHalfEmpty()
	c.peerWaits = c.peerWaits && !tell
	c.mu.Unlock()
	if tell {
		text := message{Kind: connHasRoom, Conn: c.id}.encode(nil)
		c.pool.startGoroutine(func() { _, _ = c.pool.opts.Network.Send(c.ctx, c.peer, text) }) // the peer asks again if it is lost
	}
}

// How long a failure to reach the peer may last before it ends the connection.
const (
	breakLimit   = 3 * time.Second   // this process is cut off
	goneLimit    = time.Second       // the peer has no connection to the network: it has ended, or connects again
	silenceLimit = replica.LeaseLife // the peer does not answer
	retryPause   = 50 * time.Millisecond
)

// sendMessage sends a message until it is acknowledged. If the connection has begun, sendMessage
// waits out a short loss of the network's connection, at either end.
func (c *conn) sendMessage(ctx context.Context, m message, data []byte) (answer []byte, err error) {
	m.Conn = c.id
	text := m.encode(data)
	start, since, lastLimit := time.Now(), time.Time{}, time.Duration(0)
	for {
		began := time.Now()
		answer, err = c.pool.opts.Network.Send(ctx, c.peer, text)
		if err == nil || errors.Is(err, replica.ErrTooLarge) {
			return answer, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		limit, why := c.explainFailure(err, time.Since(began))
		if !c.isBegun {
			return nil, why
		}
		if limit != lastLimit {
			lastLimit, since = limit, began
		}
		if time.Since(since) >= limit || time.Since(start) >= silenceLimit {
			return nil, why
		}
		if err := timeout.Sleep(ctx, retryPause); err != nil {
			return nil, err
		}
	}
}

// explainFailure returns how long an error of the network may last, and the error for the user.
// took is the time after which it has come.
func (c *conn) explainFailure(err error, took time.Duration) (limit time.Duration, why error) {
	switch {
	case errors.Is(err, replica.ErrGone):
		return goneLimit, errGone{c.peer}
	case !errors.Is(err, replica.ErrUnreachable):
		return 0, fmt.Errorf("%s: %w", describeInstance(c.peer), err)
	case took < checkInterval/2:
		return breakLimit, err
	}
	return silenceLimit, errSilent{c.peer}
}

// errSilent is the error of a peer that does not answer.
type errSilent struct{ peer string }

func (e errSilent) Error() string { return describeInstance(e.peer) + " does not answer" }

func isSilent(err error) bool {
	_, ok := errors.AsType[errSilent](err)
	return ok
}
