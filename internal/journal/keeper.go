package journal

import (
	"bytes"
	"time"

	"github.com/dowel-mcp/dowel/internal/callmark"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// keeper turns entries of the inbox into records. Recorder.keeperMu guards it.
type keeper struct {
	recorder *Recorder
	seq      uint64   // of the newest record
	made     []Record // not in the ring yet
	memory   slabs
	names    map[string]string // names of tools, so that equal ones share memory
	headers  headerMasker
	exchangeTable
}

// connState holds the facts that a connection has told.
type connState struct {
	scope    uint64 // of its requests: the session of its last frame, else the connection
	client   string
	revision mcp.Revision
	askers   []*exchange // calls in flight that may ask
}

func (k *keeper) setUp(r *Recorder) {
	k.recorder, k.names = r, map[string]string{}
	k.exchangeTable.setUp()
}

// keepAll stores all entries.
func (k *keeper) keepAll(b *inbox) {
	for i := range b.entries {
		e := &b.entries[i]
		data := b.data[e.start : e.start+e.size*boolToInt(e.kind != lossEntry)]
		switch e.kind {
		case frameEntry:
			k.keepFrame(e, data)
		case callEntry:
			k.keepCall(e, data)
		case returnEntry:
			k.keepReturn(e)
		case linkEntry:
			forgetOne(k.links, maxWaiting)
			k.links[k.keyOf(e.conn, true, e.id)] = e.call
		case dropEntry:
			k.keepDrop(e)
		case lossEntry:
			k.publish()
			k.seq += uint64(e.size)
			k.recorder.ring.noteLoss(k.seq)
		}
	}
	k.publish()
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// publish moves the records to the ring.
func (k *keeper) publish() {
	if len(k.made) > 0 {
		k.recorder.ring.addRecords(k.made)
		clear(k.made)
		k.made = k.made[:0]
	}
}

// addRecord adds a record and returns its sequence number.
func (k *keeper) addRecord(r Record) uint64 {
	k.seq++
	r.Seq = k.seq
	k.made = append(k.made, r)
	return k.seq
}

// keepFrame stores a frame and follows its meaning.
func (k *keeper) keepFrame(e *entry, data []byte) {
	c := e.conn
	f := k.memory.newFrame(len(data))
	*f = Frame{
		Time: e.time, Leg: c.leg, Direction: e.direction, Conn: c.number, Server: c.server, Size: len(data),
		Header: k.headers.mask(e.header, k.recorder.secrets),
	}
	if e.header != nil {
		c.keeping.scope = k.scopeOf(c, e.header)
	}
	seq := k.addRecord(Record{Frame: f})
	var op *operation
	switch msg, err := jsonrpc.Parse(data, methodNames); {
	case mcpwire.IsBatch(data):
		f.Kind = Batch
		op = k.followBatch(f, seq, c, data)
	case err != nil || e.direction == framesink.Malformed:
		f.Kind = Stray
		op = c.onlyOperation()
	default:
		op = k.followMessage(f, seq, c, &msg)
	}
	f.Client, f.Revision = c.keeping.client, c.keeping.revision
	f.Body = k.memory.keep(k.maskBody(data))
	if op != nil {
		k.addToOperation(op, f)
	}
}

// methodNames are the methods that are not allocated.
var methodNames = mcpwire.MethodNames()

// followBatch follows the messages of a batch. The frame belongs to the operation of the first.
func (k *keeper) followBatch(f *Frame, seq uint64, c *Conn, data []byte) (first *operation) {
	const maxBatch = 1000
	raws, _ := mcpwire.SplitBatch(data, maxBatch)
	for _, raw := range raws {
		msg, err := jsonrpc.Parse(raw, methodNames)
		if err != nil {
			continue
		}
		part := *f
		op := k.followMessage(&part, seq, c, &msg)
		if first == nil {
			first = op
			f.Method, f.Name, f.ID, f.Status, f.Took = part.Method, part.Name, part.ID, part.Status, part.Took
			f.Mark = part.Mark
		}
	}
	return first
}

// followMessage fills the fields of a frame, and returns the operation that it belongs to, or nil.
func (k *keeper) followMessage(f *Frame, seq uint64, c *Conn, msg *jsonrpc.Message) *operation {
	f.Method, f.ID = msg.Method, msg.ID
	switch {
	case msg.IsRequest():
		f.Kind = Request
		m := readRequest(msg.Params)
		if m.name != nil {
			f.Name = k.shareName(m.name)
		}
		if mark, ok := rawjson.String(m.mark); ok && len(mark) <= callmark.MaxLength {
			f.Mark = mark
		}
		k.noteRequest(c, &m)
		if (f.Direction == framesink.Sent) == (c.leg == ServerLeg) {
			return k.followCall(f, seq, c, msg, &m)
		}
		return k.followQuestion(f, c, msg)
	case msg.IsNotification():
		f.Kind = Notification
		return k.followNotification(f, c, msg)
	}
	f.Kind = Response
	return k.followResponse(f, c, msg)
}

// noteRequest notes the revision of a connection, and the client of a client leg.
func (k *keeper) noteRequest(c *Conn, m *requestMembers) {
	if m.version != nil {
		c.keeping.revision = k.revisionOf(m.version)
	}
	if c.leg == ClientLeg && m.clientInfo != nil {
		c.keeping.client = k.shareName(rawjson.Lookup(m.clientInfo, "name"))
	}
}

// revisionOf returns the revision in a JSON string, or "" if dowel does not know it.
func (k *keeper) revisionOf(raw []byte) mcp.Revision {
	for _, r := range mcp.Revisions() {
		if rawjson.Is(raw, string(r)) {
			return r
		}
	}
	return ""
}

// Limits of the shared names, and of one name in bytes.
const (
	maxNames = 4096
	maxName  = 512
)

// shareName returns the text of a JSON string without secrets. Equal names share memory.
func (k *keeper) shareName(raw []byte) string {
	if len(raw) > maxName {
		text, _ := rawjson.String(raw)
		return k.recorder.secrets.Text(text[:min(len(text), maxName)])
	}
	if name, ok := k.names[string(raw)]; ok {
		return name
	}
	text, _ := rawjson.String(raw)
	text = k.recorder.secrets.Text(text)
	if len(k.names) < maxNames {
		k.names[string(raw)] = text
	}
	return text
}

// maskBody returns the part of a frame that is kept, without secrets. The result may alias data.
func (k *keeper) maskBody(data []byte) []byte {
	if len(data) > MaxBody {
		data = cutBody(data)
	}
	if !k.recorder.secrets.MayContain(data) {
		return data
	}
	return []byte(k.recorder.secrets.Text(string(data)))
}

// cutBody cuts a long frame before a value, so that no part of a secret is left at the cut.
func cutBody(data []byte) []byte {
	const longestSecret = 8 << 10
	data = data[:MaxBody]
	if i := bytes.LastIndexAny(data[MaxBody-longestSecret:], "\",\n"); i > 0 {
		return data[:MaxBody-longestSecret+i]
	}
	return data[:MaxBody-longestSecret]
}

// keepCall notes the handler's context of a request and the name of its client.
func (k *keeper) keepCall(e *entry, clientInfo []byte) {
	x := k.open[k.keyOf(e.conn, false, e.id)]
	if x == nil {
		return
	}
	e.call.op = x.op
	name := e.principal
	if name == "" {
		name = k.shareName(rawjson.Lookup(clientInfo, "name"))
	}
	if name != "" && x.op.Client != name {
		x.op.Client, e.conn.keeping.client = name, name
	}
}

// keepReturn notes that a handler has returned and its client does not wait any more.
func (k *keeper) keepReturn(e *entry) {
	if x := k.open[k.keyOf(e.conn, false, e.id)]; x != nil && x.op == e.call.op {
		k.closeExchange(x)
	}
	k.cancelOperation(e.call.op, e.time)
}

// keepDrop closes a request that gets no response. A client's operation stays open: dowel may ask
// the server again, and answers the client itself.
func (k *keeper) keepDrop(e *entry) {
	key := k.keyOf(e.conn, e.direction == framesink.Sent, e.id)
	if e.direction == framesink.Sent {
		delete(k.links, key) // of a request that was not sent
	}
	x := k.open[key]
	if x == nil {
		return
	}
	x.op.splitTime(e.time)
	k.closeExchange(x)
	switch {
	case x.isQuestion:
		x.op.closeQuestion()
	case x.op.leg != e.conn.leg:
	case e.err == nil:
		k.endOperation(x.op, Cancelled, e.time)
	case x.op.IsOpen():
		x.op.Error = k.errorText(e.err.Error())
		k.endOperation(x.op, Failed, e.time)
	}
	k.recordChange(x.op)
}

// errorText returns the part of an error's text that is kept, without secrets.
func (k *keeper) errorText(text string) string {
	return k.recorder.secrets.Text(text[:min(len(text), maxName)])
}

// slabs allocates many small values at once.
type slabs struct {
	bytes  []byte
	frames []Frame
	states []Operation

	exchanges  []exchange
	operations []operation
}

// large is the size of a body, in bytes, from which on it is not kept in a slab.
const large = 8 << 10

// keep returns a copy of data.
func (s *slabs) keep(data []byte) []byte {
	const slab = 64 << 10
	if len(data) > large {
		return bytes.Clone(data)
	}
	if len(s.bytes)+len(data) > cap(s.bytes) {
		s.bytes = make([]byte, 0, slab)
	}
	start := len(s.bytes)
	s.bytes = append(s.bytes, data...)
	return s.bytes[start:len(s.bytes):len(s.bytes)]
}

const slabValues = 64

// newValue returns the next value of a slab.
func newValue[T any](slab *[]T) *T {
	if len(*slab) == 0 {
		*slab = make([]T, slabValues)
	}
	v := &(*slab)[0]
	*slab = (*slab)[1:]
	return v
}

// newFrame returns a frame for a body of the given size. A large one is allocated alone: as long as
// one frame of a slab is kept, the bodies of all of them are.
func (s *slabs) newFrame(size int) *Frame {
	if size > large {
		return new(Frame)
	}
	return newValue(&s.frames)
}

func (s *slabs) newExchange() *exchange { return newValue(&s.exchanges) }

func (s *slabs) newOperation() *operation { return newValue(&s.operations) }

func (s *slabs) newState(o Operation) *Operation {
	state := newValue(&s.states)
	*state = o
	return state
}

// elapsed returns the time between two times, never less than 0.
func elapsed(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }
