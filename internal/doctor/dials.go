package doctor

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// dials are the connections that an [http.Transport] makes. It lets a dial go on when the request that wanted it has ended,
// and so does a TLS handshake: with close they end too.
type dials struct {
	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	over  bool
	conns []net.Conn
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// watch makes the transport's connections those of d.
func (d *dials) watch(t *http.Transport) {
	d.life, d.end = context.WithCancel(context.Background())
	switch {
	case t.DialContext != nil:
		t.DialContext = d.through(t.DialContext)
	case t.Dial == nil: // deprecated, and heeded
		t.DialContext = d.through(new(net.Dialer).DialContext)
	}
	if t.DialTLSContext != nil {
		t.DialTLSContext = d.through(t.DialTLSContext)
	}
}

func (d *dials) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d.mu.Lock()
		if d.over {
			d.mu.Unlock()
			return nil, mcp.ErrClosed
		}
		d.work.Add(1)
		d.mu.Unlock()
		defer d.work.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(d.life, cancel)()
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

// close ends everything, and waits for the dials.
func (d *dials) close() {
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.end()
	d.work.Wait()
	for _, conn := range d.conns {
		_ = conn.Close() // mostly closed already
	}
}
