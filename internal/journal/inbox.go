package journal

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Limits of the inbox. Entries beyond them are lost, and so is each frame above maxInboxBytes: its
// copy would hold as much memory as the gateway's own limits allow to a client.
const (
	maxInboxBytes   = 8 << 20
	maxInboxEntries = 1 << 14
	// keptInboxBytes is the memory that an empty inbox keeps.
	keptInboxBytes = 2 << 20
)

// drainDelay is how long frames may wait in the inbox. A longer delay means fewer wake-ups.
const drainDelay = 20 * time.Millisecond

// entryKind is the kind of an entry of the inbox.
type entryKind uint8

const (
	frameEntry  entryKind = iota // a frame
	callEntry                    // the handler has got a request
	returnEntry                  // the handler has returned without an answer
	linkEntry                    // a request to a server belongs to a call
	dropEntry                    // a request gets no response
	lossEntry                    // entries were lost
)

// entry is something that happened on a connection.
type entry struct {
	kind      entryKind
	direction framesink.Direction
	time      time.Time
	conn      *Conn
	start     int // of the data in the inbox
	size      int // of the data; for lossEntry the number of lost frames
	header    map[string][]string
	id        jsonrpc.ID
	call      *call  // of callEntry, returnEntry and linkEntry
	principal string // of callEntry
	err       error  // of dropEntry
}

// inbox holds the entries until the next drain. Recorder.mu guards it.
type inbox struct {
	entries []entry
	data    []byte
}

// reset empties the inbox and releases the memory of a burst.
func (b *inbox) reset() {
	clear(b.entries)
	b.entries, b.data = b.entries[:0], b.data[:0]
	if cap(b.data) > keptInboxBytes {
		b.data = nil
	}
}

// put adds an entry with its data, or counts a loss. It never waits for a reader.
func (r *Recorder) put(e entry, data []byte) {
	e.time = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	b := &r.inbox
	if len(b.entries) >= maxInboxEntries-1 || len(b.data)+len(data) > maxInboxBytes {
		if last := len(b.entries) - 1; last < 0 || b.entries[last].kind != lossEntry {
			b.entries = append(b.entries, entry{kind: lossEntry, time: e.time})
		}
		b.entries[len(b.entries)-1].size++
	} else {
		e.start, e.size = len(b.data), len(data)
		b.data = append(b.data, data...)
		b.entries = append(b.entries, e)
	}
	if !r.scheduled {
		r.scheduled = true
		r.timer.Reset(drainDelay)
	}
}

// Conn records one connection. It implements [framesink.Sink].
type Conn struct {
	recorder *Recorder
	number   uint64
	leg      Leg
	server   string

	keeping connState // guarded by Recorder.keeperMu
}

// AddFrame implements [framesink.Sink].
func (c *Conn) AddFrame(d framesink.Direction, data []byte, header map[string][]string) {
	c.recorder.put(entry{kind: frameEntry, direction: d, conn: c, header: header}, data)
}

// LinkRequest implements [framesink.Sink].
func (c *Conn) LinkRequest(ctx context.Context, id jsonrpc.ID) {
	if ctx == nil {
		return
	}
	if call, ok := ctx.Value(callKey{}).(*call); ok && call.conn.recorder == c.recorder {
		c.recorder.put(entry{kind: linkEntry, conn: c, id: id, call: call}, nil)
	}
}

// DropRequest implements [framesink.Sink].
func (c *Conn) DropRequest(d framesink.Direction, id jsonrpc.ID, err error) {
	c.recorder.put(entry{kind: dropEntry, direction: d, conn: c, id: id, err: err}, nil)
}
