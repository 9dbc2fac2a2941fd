package calling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// What a server sends that is no message, or that nobody waits for.

// malformed is a frame that is no message. The call that it was meant to answer fails, rather than wait for ever; but where
// the frame was cut short, the end of the connection says more about it, and is given a moment to come.
func (c *caller) malformed(frame []byte, id jsonrpc.ID, err error) {
	const moment = time.Second
	c.stray(frame, err)
	response := bytes.Contains(frame, []byte(`"result"`)) || bytes.Contains(frame, []byte(`"error"`))
	if bytes.Contains(frame, []byte(`"method"`)) || id.IsZero() && !response {
		return // the id of a question is none of this side's, and rubbish answers nothing
	}
	if id.IsZero() {
		id = c.only()
	}
	fail := func() {
		c.fail(frames.UnquoteID(id), fmt.Errorf("the server answered with what is no JSON-RPC 2.0 message: %w", err))
	}
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Code == jsonrpc.CodeParse {
		time.AfterFunc(moment, fail)
		return
	}
	fail()
}

// stray is what cannot be addressed to anybody: it is read past, and the log has it.
func (c *caller) stray(frame []byte, err error) {
	const shown = 200
	if n, log := c.strays.Add(); log {
		c.logger.Warn("the server sent something that is no message", "err", err, "count", n, "start", strconv.Quote(string(frame[:min(len(frame), shown)])))
	}
}

// lost is a frame that could not be read. The call that it may have answered fails, rather than wait for ever: the one
// that it names, or the only one.
func (c *caller) lost(err error) {
	c.stray(nil, err)
	var lost *transport.FrameError
	if errors.As(err, &lost) && lost.Method {
		return // a question or notification answers nothing
	}
	if lost != nil && !lost.ID.IsZero() {
		c.fail(frames.UnquoteID(lost.ID), err)
		return
	}
	for _, id := range c.waiting() {
		c.fail(id, fmt.Errorf("a response was lost, and it may have been this call's: %w", err))
	}
}

// waiting returns the ids of the exchanges in flight that a response may come for at any time.
func (c *caller) waiting() (ids []jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.pending {
		if x.method != mcp.MethodListen && !x.late {
			ids = append(ids, x.id)
		}
	}
	return ids
}

// only returns the id of the one exchange in flight that waits for a response; the zero ID where there are none or several.
func (c *caller) only() (id jsonrpc.ID) {
	if ids := c.waiting(); len(ids) == 1 {
		return ids[0]
	}
	return id
}

// failAll fails the calls that are answered in a batch which may not be.
func (c *caller) failAll(batch []json.RawMessage, err error) {
	for _, raw := range batch {
		if msg, bad := c.parser.Parse(raw); bad == nil && msg.IsResponse() {
			c.fail(frames.UnquoteID(msg.ID), err)
		}
	}
}

// fail ends the exchange with the id, if there is one.
func (c *caller) fail(id jsonrpc.ID, err error) {
	if x := c.take(id); x != nil {
		x.end(reply{err: err})
	}
}

// UnaddressedFrames implements [frames.Unaddressed].
func (c *caller) UnaddressedFrames() int64 { return c.strays.Total() }
