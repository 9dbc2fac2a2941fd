package eventstream

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// The tests of this file run servers over [net.Pipe] in a bubble of testing/synctest, so that
// timeouts expire without waiting.

// pipeListener is a listener to which dial connects.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	l.conns <- far
	return near, nil
}

// servePipe serves h over pipes, in the clear, and returns a client's transport.
func servePipe(t *testing.T, http2 bool, h http.Handler, timeout time.Duration) *http.Transport {
	l := &pipeListener{make(chan net.Conn), make(chan struct{})}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	s := &http.Server{Handler: h, WriteTimeout: timeout, ReadTimeout: timeout, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0)}
	go s.Serve(l)
	client := &http.Transport{DialContext: l.dial, Protocols: protocols}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return client
}

// getPipe requests the stream of a server behind client.
func getPipe(t *testing.T, client http.RoundTripper) io.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://pipe/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	return res.Body
}

// The write timeout of the server must not end a stream, neither directly nor behind a proxy.
func TestOutlivesWriteTimeout(t *testing.T) {
	const limit = time.Minute
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := NewWriter(w, WriterOptions{KeepAlive: limit})
		defer stream.Close()
		_ = stream.Open()
		for range 3 {
			time.Sleep(limit)
			if err := stream.Send(Event{Data: []byte("a")}); err != nil {
				t.Error(err)
			}
		}
	})
	for _, http2 := range []bool{false, true} {
		for _, proxy := range []string{"", "HTTP1", "HTTP2"} {
			t.Run(fmt.Sprintf("HTTP2 %v, proxy %q", http2, proxy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := servePipe(t, http2, h, limit)
					if proxy != "" {
						to := &url.URL{Scheme: "http", Host: "pipe"}
						client = servePipe(t, proxy == "HTTP2", &httputil.ReverseProxy{
							Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: client, ErrorLog: log.New(io.Discard, "", 0),
						}, 0)
					}
					events := NewReader(getPipe(t, client), 0)
					for range 3 {
						if _, err := events.Next(); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := events.Next(); err != io.EOF {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A stream that has ended must leave no deadline on its connection, which is reused.
func TestConnectionIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		dials := 0
		client := servePipe(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stream := NewWriter(w, WriterOptions{WriteTimeout: limit})
			_ = stream.Send(Event{Data: []byte("a")})
			_ = stream.Close()
		}), 0)
		dial := client.DialContext
		client.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return dial(ctx, network, address)
		}
		for range 2 {
			if all, err := io.ReadAll(getPipe(t, client)); err != nil || string(all) != "data: a\n\n" {
				t.Errorf("%q, %v", all, err)
			}
			time.Sleep(2 * limit)
		}
		if dials != 1 {
			t.Errorf("%d connections, want 1", dials)
		}
	})
}
