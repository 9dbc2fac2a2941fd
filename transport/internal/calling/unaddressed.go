package calling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// This file handles malformed frames, and messages that belong to no request.

// handleMalformed handles a malformed frame. It fails the call that the frame seems to answer. If
// the frame is cut short, it waits a second before that: the connection has probably ended, and its
// error then explains the failure better.
func (c *caller) handleMalformed(frame []byte, id jsonrpc.ID, err error) {
	const moment = time.Second
	c.logUnaddressed(frame, err)
	response := bytes.Contains(frame, []byte(`"result"`)) || bytes.Contains(frame, []byte(`"error"`))
	if bytes.Contains(frame, []byte(`"method"`)) || id.IsZero() && !response {
		return // a request of the server, or data that is not a response, such as a line of a log
	}
	if id.IsZero() {
		id = c.onlyAwaitedID()
	}
	fail := func() {
		c.failExchange(frames.UnquoteID(id), fmt.Errorf("the server's answer is not a JSON-RPC 2.0 message: %w", err))
	}
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Code == jsonrpc.CodeParse {
		time.AfterFunc(moment, fail)
		return
	}
	fail()
}

// logUnaddressed counts a frame that belongs to no request, and logs some of them.
func (c *caller) logUnaddressed(frame []byte, err error) {
	const shown = 200
	if n, log := c.unaddressed.Add(); log {
		c.logger.Warn("the server sent something other than a message", "err", err, "count", n, "start", strconv.Quote(string(frame[:min(len(frame), shown)])))
	}
}

// handleLostFrame handles a frame that could not be read, for example because it is too large. It
// fails the call with the id in the frame. If the id is unknown, it fails all calls that await a
// response.
func (c *caller) handleLostFrame(err error) {
	c.logUnaddressed(nil, err)
	var lost *transport.FrameError
	if errors.As(err, &lost) && lost.Method {
		return // not a response
	}
	if lost != nil && !lost.ID.IsZero() {
		c.failExchange(frames.UnquoteID(lost.ID), err)
		return
	}
	for _, id := range c.awaitedIDs() {
		c.failExchange(id, fmt.Errorf("a response was lost, and it may have been this call's: %w", err))
	}
}

// awaitedIDs returns the ids of the requests in flight, without subscriptions and without probes
// for which Connect no longer waits.
func (c *caller) awaitedIDs() (ids []jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.pending {
		if x.method != mcp.MethodListen && !x.lateProbe {
			ids = append(ids, x.id)
		}
	}
	return ids
}

// onlyAwaitedID returns the id in awaitedIDs if there is exactly one, else the zero ID.
func (c *caller) onlyAwaitedID() (id jsonrpc.ID) {
	if ids := c.awaitedIDs(); len(ids) == 1 {
		return ids[0]
	}
	return id
}

// failBatch fails the calls that a refused batch answers.
func (c *caller) failBatch(batch []json.RawMessage, err error) {
	for _, raw := range batch {
		if msg, bad := jsonrpc.Parse(raw, frames.MethodNames); bad == nil && msg.IsResponse() {
			c.failExchange(frames.UnquoteID(msg.ID), err)
		}
	}
}

// failExchange ends the exchange with the id, if it is in flight.
func (c *caller) failExchange(id jsonrpc.ID, err error) {
	if x := c.takeExchange(id); x != nil {
		c.dropRequest(x.id, err)
		x.deliverReply(reply{err: err})
	}
}

// UnaddressedFrames implements [frames.Unaddressed].
func (c *caller) UnaddressedFrames() int64 { return c.unaddressed.Total() }
