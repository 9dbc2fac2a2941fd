package journal

import (
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Limits of the exchange table. Beyond them, something is forgotten.
const (
	maxOpen     = 1 << 14
	maxWaiting  = 1 << 12
	maxSessions = 1 << 12
)

// requestKey identifies a request in flight.
type requestKey struct {
	scope uint64 // the session or the connection
	sent  bool   // dowel has sent the request
	id    jsonrpc.ID
}

// requestFacts are copied from the frame of a request. The frame itself may be dropped from the
// ring long before its response comes.
type requestFacts struct {
	Method, Name string
	Time         time.Time
}

func factsOf(f *Frame) requestFacts { return requestFacts{f.Method, f.Name, f.Time} }

// exchange is a request without a response so far.
type exchange struct {
	op         *operation
	conn       *Conn
	request    requestFacts
	isQuestion bool // a server's request to a client
	key, token requestKey
}

// waitingKey identifies a call that its client will continue: by its request state, or by a task.
type waitingKey struct{ method, name, state string }

// exchangeTable finds the operation of a frame.
type exchangeTable struct {
	open     map[requestKey]*exchange
	tokens   map[requestKey]*exchange // by the progress token of a client
	links    map[requestKey]*call     // of requests to servers that are about to be sent
	waiting  map[waitingKey]*operation
	tasks    map[waitingKey]*operation
	sessions map[string]uint64 // scope of a session, by its id
	scopes   uint64            // number of scopes of sessions
}

func (t *exchangeTable) setUp() {
	t.open, t.tokens, t.links = map[requestKey]*exchange{}, map[requestKey]*exchange{}, map[requestKey]*call{}
	t.waiting, t.tasks, t.sessions = map[waitingKey]*operation{}, map[waitingKey]*operation{}, map[string]uint64{}
}

// forgetOne removes one entry of a map that has reached its limit.
func forgetOne[K comparable, V any](m map[K]V, limit int) (forgotten V, ok bool) {
	if len(m) < limit {
		return forgotten, false
	}
	for key, value := range m {
		delete(m, key)
		return value, true
	}
	return forgotten, false
}

// scopeOf returns the scope of the requests on a connection: a legacy session spans several
// connections of HTTP.
func (t *exchangeTable) scopeOf(c *Conn, header map[string][]string) uint64 {
	ids := header[mcpwire.HeaderSessionID]
	if len(ids) == 0 {
		return 0
	}
	scope, ok := t.sessions[ids[0]]
	if !ok {
		forgetOne(t.sessions, maxSessions)
		t.scopes++
		scope = t.scopes
		t.sessions[ids[0]] = scope
	}
	return scope
}

// sessionScope marks the scope of a session, as opposed to a connection.
const sessionScope = 1 << 63

func (t *exchangeTable) keyOf(c *Conn, sent bool, id jsonrpc.ID) requestKey {
	scope := c.number
	if c.keeping.scope != 0 && c.leg == ClientLeg { // a server connection has one session
		scope = c.keeping.scope | sessionScope
	}
	return requestKey{scope, sent, id}
}

// addExchange adds a request in flight.
func (k *keeper) addExchange(x *exchange, key requestKey) {
	if lost, ok := forgetOne(k.open, maxOpen); ok {
		k.closeExchange(lost)
		k.endOperation(lost.op, Lost, x.request.Time)
		k.recordChange(lost.op)
	}
	if old := k.open[key]; old != nil { // the id is used again: the connection was opened again
		k.closeExchange(old)
	}
	x.key = key
	k.open[key] = x
	if x.conn.leg == ServerLeg && !x.isQuestion {
		x.op.inServer++
	}
	if x.isQuestion {
		x.op.open = append(x.op.open, x)
	}
	if x.mayAsk() {
		x.conn.keeping.askers = append(x.conn.keeping.askers, x)
	}
}

// mayAsk reports whether the server may ask something before it answers.
func (x *exchange) mayAsk() bool { return !x.isQuestion && mcpwire.MayAsk(x.request.Method) }

// closeExchange removes a request that has its response, or gets none.
func (k *keeper) closeExchange(x *exchange) {
	delete(k.open, x.key)
	isThis := func(other *exchange) bool { return other == x }
	x.conn.keeping.askers = slices.DeleteFunc(x.conn.keeping.askers, isThis)
	x.op.open = slices.DeleteFunc(x.op.open, isThis)
	if !x.token.id.IsZero() {
		delete(k.tokens, x.token)
	}
	if x.conn.leg == ServerLeg && !x.isQuestion {
		x.op.inServer = max(0, x.op.inServer-1)
	}
}

// findOperation returns the operation that a request of a client continues, or nil. A request
// continues a call if it has the state that the call's last result had.
func (t *exchangeTable) findOperation(method, name string, m *requestMembers) *operation {
	if m.taskID != nil {
		return t.tasks[waitingKey{state: string(m.taskID)}]
	}
	if m.requestState == nil {
		return nil
	}
	key := waitingKey{method, name, string(m.requestState)}
	op := t.waiting[key]
	delete(t.waiting, key)
	return op
}

// expectContinuation remembers what the client needs to continue a call: the state of an
// input_required result, or the id of a task.
func (t *exchangeTable) expectContinuation(op *operation, method, name string, m *resultMembers) {
	if m.task != nil {
		key := waitingKey{state: string(m.task)}
		forgetOne(t.tasks, maxWaiting)
		t.tasks[key] = op
		return
	}
	if m.state == nil {
		return
	}
	forgetOne(t.waiting, maxWaiting)
	key := waitingKey{method, name, string(m.state)}
	if other, taken := t.waiting[key]; taken && other != op {
		op = nil // two calls have the same state: neither can be told
	}
	t.waiting[key] = op
}

// onlyExchange returns the only call in flight on a connection that can have caused a frame, or
// nil.
func (c *Conn) onlyExchange() *exchange {
	if len(c.keeping.askers) == 1 {
		return c.keeping.askers[0]
	}
	return nil
}

// onlyOperation returns the operation of the only request in flight on a connection, or nil.
func (c *Conn) onlyOperation() *operation {
	if x := c.onlyExchange(); x != nil {
		return x.op
	}
	return nil
}

// isListChange reports whether a notification belongs to no call.
func isListChange(method string) bool {
	switch method {
	case mcp.NotificationProgress, mcp.NotificationMessage, mcpwire.NotificationCancelled:
		return false
	}
	return true
}
