package journal

import (
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// operation is an operation that may still change. Recorder.keeperMu guards it.
type operation struct {
	Operation
	leg      Leg         // of its first frame
	at       time.Time   // up to which the time is split
	inServer int         // requests that servers work on
	asked    int         // questions without an answer
	asks     [2]int      // number of questions on each leg, which both may carry
	changed  bool        // since the last record
	open     []*exchange // questions without an answer on a legacy session
	task     bool        // a server works on a task, between the polls of the client too
}

// dowelClient is the client of requests that dowel itself makes.
const dowelClient = "dowel"

// newOperation begins an operation with a frame.
func (k *keeper) newOperation(f *Frame, seq uint64, c *Conn) *operation {
	op := k.memory.newOperation()
	op.leg, op.at = c.leg, f.Time
	op.Operation = Operation{
		ID: seq, Start: f.Time, Client: c.keeping.client, Server: c.server, Method: f.Method, Name: f.Name, Status: Pending,
	}
	if c.leg == ServerLeg {
		op.Client = dowelClient
	}
	return op
}

// splitTime adds the time since its last call to one part of the operation's time.
func (op *operation) splitTime(now time.Time) {
	if !op.IsOpen() {
		return
	}
	d := elapsed(op.at, now)
	switch {
	case op.asked > 0:
		op.InUser += d
	case op.inServer > 0 || op.task:
		op.InServer += d
	default:
		op.InDowel += d
	}
	if now.After(op.at) {
		op.at = now
	}
}

// addToOperation adds a frame to an operation, and a record of the operation if it has changed.
func (k *keeper) addToOperation(op *operation, f *Frame) {
	f.Operation = op.ID
	op.Frames++
	if f.Leg == ClientLeg || op.leg == ServerLeg {
		if (f.Direction == framesink.Sent) == (op.leg == ClientLeg) {
			op.Sent += f.Size
		} else {
			op.Received += f.Size
		}
	}
	if f.Client == "" {
		f.Client = op.Client
	}
	k.recordChange(op)
}

// recordChange adds a record of an operation that has changed.
func (k *keeper) recordChange(op *operation) {
	if op.changed {
		op.changed = false
		k.addRecord(Record{Operation: k.memory.newState(op.Operation)})
	}
}

// setStatus changes the status of an operation that has not ended.
func (op *operation) setStatus(s Status) {
	if op.IsOpen() && op.Status != s {
		op.Status, op.changed = s, true
	}
}

// endOperation ends an operation, unless it has ended.
func (k *keeper) endOperation(op *operation, s Status, at time.Time) {
	if !op.IsOpen() {
		return
	}
	op.splitTime(at)
	op.Status, op.End, op.changed, op.task = s, at, true, false
	for _, question := range slices.Clone(op.open) { // they get no answer
		k.closeExchange(question)
	}
}

// cancelOperation ends an operation: its client does not wait any more.
func (k *keeper) cancelOperation(op *operation, at time.Time) {
	if op != nil {
		k.endOperation(op, Cancelled, at)
		k.recordChange(op)
	}
}

// followCall follows a request of a client to dowel, or of dowel to a server.
func (k *keeper) followCall(f *Frame, seq uint64, c *Conn, msg *jsonrpc.Message, m *requestMembers) *operation {
	key := k.keyOf(c, c.leg == ServerLeg, msg.ID)
	var op *operation
	if c.leg == ServerLeg {
		if call := k.links[key]; call != nil && call.op != nil && call.op.IsOpen() {
			op = call.op
			op.Server = c.server
		}
		delete(k.links, key)
	} else if op = k.findOperation(f.Method, f.Name, m); op != nil && !op.IsOpen() && m.taskID == nil {
		op = nil
	}
	if op == nil {
		op = k.newOperation(f, seq, c)
		op.changed = true
	}
	op.splitTime(f.Time)
	if c.leg == ServerLeg {
		op.Calls++
	} else {
		op.Rounds++
		if op.asked > 0 && op.Rounds > 1 {
			op.asked--
		}
		op.setStatus(Pending)
	}
	x := k.memory.newExchange()
	*x = exchange{op: op, conn: c, request: factsOf(f)}
	k.addExchange(x, key)
	if c.leg == ClientLeg && m.token != nil {
		k.addToken(x, c, m.token)
	}
	return op
}

// addToken remembers the progress token of a client's request. dowel's own tokens are the ids of
// its requests.
func (k *keeper) addToken(x *exchange, c *Conn, raw []byte) {
	if id, err := jsonrpc.ParseID(raw); err == nil {
		x.token = k.keyOf(c, false, id)
		k.tokens[x.token] = x
	}
}

// followQuestion follows a request of a server to dowel, or of dowel to a client: a question of a
// legacy session, or a ping.
func (k *keeper) followQuestion(f *Frame, c *Conn, msg *jsonrpc.Message) *operation {
	if msg.Method == mcpwire.MethodPing {
		return nil
	}
	caller := c.onlyExchange()
	if caller == nil {
		return nil
	}
	op := caller.op
	op.splitTime(f.Time)
	x := &exchange{op: op, conn: c, request: factsOf(f), isQuestion: true}
	k.addExchange(x, k.keyOf(c, c.leg == ClientLeg, msg.ID))
	op.asked++
	op.countQuestions(c.leg, 1)
	op.setStatus(Asked)
	op.changed = true
	return op
}

// countQuestions counts questions that were seen on a leg.
func (op *operation) countQuestions(l Leg, n int) {
	op.asks[l] += n
	op.Questions = max(op.asks[ClientLeg], op.asks[ServerLeg])
}

// closeQuestion notes that a question has its answer, or gets none.
func (op *operation) closeQuestion() {
	op.asked = max(0, op.asked-1)
	if op.asked == 0 {
		op.setStatus(Pending)
	}
}

// followNotification returns the operation of a notification, and notes progress and cancellation.
func (k *keeper) followNotification(f *Frame, c *Conn, msg *jsonrpc.Message) *operation {
	switch {
	case msg.Method == mcp.NotificationProgress:
		x := k.exchangeOf(c, msg.Params, "progressToken")
		if x == nil {
			return nil
		}
		if c.leg == ServerLeg || x.op.Calls == 0 {
			x.op.Progress++
		}
		return x.op
	case msg.Method == mcpwire.NotificationCancelled:
		return k.followCancellation(f, c, msg)
	case isListChange(msg.Method):
		return nil
	}
	return c.onlyOperation()
}

// exchangeOf returns the call with the token in a member of params, or nil.
func (k *keeper) exchangeOf(c *Conn, params []byte, member string) *exchange {
	id, err := jsonrpc.ParseID(rawjson.Lookup(params, member))
	if err != nil {
		return nil
	}
	key := k.keyOf(c, c.leg == ServerLeg, id)
	if c.leg == ClientLeg {
		return k.tokens[key]
	}
	return k.open[key]
}

// followCancellation follows notifications/cancelled. It ends the operation if the client sends it.
func (k *keeper) followCancellation(f *Frame, c *Conn, msg *jsonrpc.Message) *operation {
	id, err := jsonrpc.ParseID(rawjson.Lookup(msg.Params, "requestId"))
	if err != nil {
		return nil
	}
	x := k.open[k.keyOf(c, f.Direction == framesink.Sent, id)]
	if x == nil {
		return nil
	}
	x.op.splitTime(f.Time)
	if x.isQuestion {
		x.op.closeQuestion()
	} else if c.leg == x.op.leg {
		k.endOperation(x.op, Cancelled, f.Time)
	}
	if c.leg == ServerLeg || x.isQuestion { // a cancelled request gets no response
		k.closeExchange(x)
	}
	return x.op
}

// followResponse follows a response of either side.
func (k *keeper) followResponse(f *Frame, c *Conn, msg *jsonrpc.Message) *operation {
	m := readResult(msg.Result)
	f.Status = m.outcome(msg.Error)
	x := k.open[k.keyOf(c, f.Direction == framesink.Received, msg.ID)]
	if x == nil {
		f.Status = Late
		return nil
	}
	op := x.op
	f.Method, f.Name, f.Took = x.request.Method, x.request.Name, elapsed(x.request.Time, f.Time)
	op.splitTime(f.Time)
	k.closeExchange(x)
	if f.Method == mcpwire.MethodInitialize {
		c.keeping.revision = k.revisionOf(m.protocolVersion)
	}
	if x.isQuestion {
		op.closeQuestion()
		return op
	}
	if f.Status == Asked {
		op.countQuestions(c.leg, m.questions)
	}
	if c.leg == op.leg {
		k.followAnswer(op, f, msg, &m)
	}
	return op
}

// followAnswer follows the response to a request of an operation's own client.
func (k *keeper) followAnswer(op *operation, f *Frame, msg *jsonrpc.Message, m *resultMembers) {
	switch {
	case f.Method != op.Method:
		k.followTask(op, f, msg, m)
	case !op.IsOpen():
		f.Status = Late
	case f.Status == Asked:
		op.asked++
		op.setStatus(Asked)
		op.changed = true
		k.expectContinuation(op, f.Method, f.Name, m)
	case f.Status == OK && m.task != nil && f.Method == op.Method:
		f.Status, op.task = Pending, true
		k.expectContinuation(op, f.Method, f.Name, m)
	default:
		if f.Status == Failed && op.leg == ClientLeg && op.Calls == 0 {
			f.Status = Refused
		}
		k.noteError(op, msg.Error, nil)
		k.endOperation(op, f.Status, f.Time)
	}
}

// followTask follows the response to a request about a task. A client of revision 2025-11-25 asks
// for the result after it has learned that the task has ended; the result may say that the tool has
// failed.
func (k *keeper) followTask(op *operation, f *Frame, msg *jsonrpc.Message, m *resultMembers) {
	s := m.taskOutcome(f.Method, msg.Error)
	switch {
	case s == Pending:
	case op.IsOpen():
		k.noteError(op, msg.Error, m.taskError)
		k.endOperation(op, s, f.Time)
	case f.Method == methodTaskResult && op.Status != s && s != OK:
		k.noteError(op, msg.Error, nil)
		op.Status, op.changed = s, true
	}
}

// noteError notes the text of an error, or of the error of a task.
func (k *keeper) noteError(op *operation, e *jsonrpc.Error, ofTask []byte) {
	text, _ := rawjson.String(rawjson.Lookup(ofTask, "message"))
	if e != nil {
		text = e.Message
	}
	if text != "" {
		op.Error = k.errorText(text)
	}
}
