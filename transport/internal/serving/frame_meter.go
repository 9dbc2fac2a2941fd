package serving

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// frameMeter counts the bytes of frames that wait for a connection. Many calls may wait for the
// same one, so the connection itself bounds nothing.
type frameMeter struct {
	account quota.Account
	waiter  quota.Waiter
	waiting atomic.Int64

	mu    sync.Mutex
	lease *quota.Lease // nil until more than quota.Uncounted bytes wait
}

// alwaysAccepted is the size in bytes up to which a frame is not refused. Such a frame tells a
// client that another one was refused.
const alwaysAccepted = 1 << 10

// countBytes counts a frame before it is written. If the frame would exceed a limit, countBytes
// counts nothing and returns a [quota.LimitError].
func (m *frameMeter) countBytes(n int) error {
	for {
		waiting := m.waiting.Load()
		if waiting+int64(n) > quota.Uncounted {
			return m.addCounted(n)
		}
		if m.waiting.CompareAndSwap(waiting, waiting+int64(n)) {
			return nil
		}
	}
}

// addCounted is add for a frame with which more than quota.Uncounted bytes wait. Such frames are
// added one after the other: a lease accepts a first frame of any size, but not several at once.
func (m *frameMeter) addCounted(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting.Add(int64(n))
	err := m.resizeLease()
	if err == nil || n <= alwaysAccepted {
		return nil
	}
	m.waiting.Add(int64(-n))
	return err
}

// subtractBytes takes back countBytes after the frame was written or dropped.
func (m *frameMeter) subtractBytes(n int) {
	if left := m.waiting.Add(int64(-n)); left+int64(n) > quota.Uncounted {
		m.mu.Lock()
		defer m.mu.Unlock()
		_ = m.resizeLease() // fails only if other frames were accepted without a lease
	}
}

// resizeLease makes the lease as large as the bytes that wait. m.mu is held.
func (m *frameMeter) resizeLease() error {
	if m.lease == nil {
		m.lease = m.account.NewLease(m.waiter)
	}
	return m.lease.Resize(max(0, m.waiting.Load()-quota.Uncounted))
}

// connCutter ends a Conn at once, if it can, and in its usual way otherwise.
type connCutter struct{ conn transport.Conn }

// CutOff implements [quota.Waiter].
func (c connCutter) CutOff(reason error) {
	if w, ok := c.conn.(quota.Waiter); ok {
		w.CutOff(reason)
		return
	}
	c.conn.Close()
}

// connCount numbers the connections of anonymous clients.
var connCount atomic.Uint64

// clientOf returns the client of a connection.
func clientOf(ctx context.Context, p mcp.Principal) quota.Client {
	return quota.ClientOf(ctx, p.ID, "connection "+strconv.FormatUint(connCount.Add(1), 10))
}

// openStream counts a subscription. If the client has too many, the call is finished and refused.
func (s *server) openStream(c *call) *mcp.Error {
	if err := s.opts.Quota.OpenStream(s.waiting.account.Client); err != nil {
		s.calls.finishCall(c)
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", err)
	}
	c.isStream = true
	return nil
}

func (s *server) closeStream() { s.opts.Quota.CloseStream(s.waiting.account.Client) }

// RefuseAnswer returns the error that takes the place of an answer that would exceed a limit.
func RefuseAnswer(id jsonrpc.ID, limit *quota.LimitError) []byte {
	return jsonrpc.AppendError(nil, id, mcp.Errorf(jsonrpc.CodeInternal, "the answer was dropped: %s", limit))
}
