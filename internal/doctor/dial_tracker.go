package doctor

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// dialTracker tracks the connections that an [http.Transport] makes. The transport itself lets a
// dial and a TLS handshake continue after the request that needed them has ended. closeAll ends
// them.
type dialTracker struct {
	ctx     context.Context
	cancel  context.CancelFunc
	pending sync.WaitGroup

	mu       sync.Mutex
	isClosed bool
	conns    []net.Conn
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// trackTransport makes t dial through d.
func (d *dialTracker) trackTransport(t *http.Transport) {
	d.ctx, d.cancel = context.WithCancel(context.Background())
	switch {
	case t.DialContext != nil:
		t.DialContext = d.wrapDial(t.DialContext)
	case t.Dial == nil: // deprecated, but honored
		t.DialContext = d.wrapDial(new(net.Dialer).DialContext)
	}
	if t.DialTLSContext != nil {
		t.DialTLSContext = d.wrapDial(t.DialTLSContext)
	}
}

func (d *dialTracker) wrapDial(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d.mu.Lock()
		if d.isClosed {
			d.mu.Unlock()
			return nil, mcp.ErrClosed
		}
		d.pending.Add(1)
		d.mu.Unlock()
		defer d.pending.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(d.ctx, cancel)()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.conns = append(d.conns, conn)
		return conn, nil
	}
}

// closeAll cancels all dials, waits for them and closes all connections.
func (d *dialTracker) closeAll() {
	d.mu.Lock()
	d.isClosed = true
	d.mu.Unlock()
	d.cancel()
	d.pending.Wait()
	for _, conn := range d.conns {
		_ = conn.Close() // usually closed already
	}
}
