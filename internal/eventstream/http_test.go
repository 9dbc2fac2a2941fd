package eventstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// serve serves h over HTTP/1.1 in the clear, or HTTP/2 with TLS.
func serve(t testing.TB, http2 bool, h http.Handler, change ...func(*http.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s.Config)
	}
	if s.EnableHTTP2 = http2; http2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// proxied puts a reverse proxy with default settings in front of a server.
func proxied(t testing.TB, http2 bool, s *httptest.Server) *httptest.Server {
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, http2, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: s.Client().Transport, ErrorLog: log.New(io.Discard, "", 0),
	})
}

// each runs a test over every kind of connection to a server.
func each(t *testing.T, test func(t *testing.T, serve func(h http.Handler, change ...func(*http.Server)) *httptest.Server)) {
	for _, http2 := range []bool{false, true} {
		name := map[bool]string{false: "HTTP1", true: "HTTP2"}[http2]
		t.Run(name, func(t *testing.T) {
			test(t, func(h http.Handler, change ...func(*http.Server)) *httptest.Server {
				return serve(t, http2, h, change...)
			})
		})
		for _, front := range []bool{false, true} {
			t.Run(name+" behind "+map[bool]string{false: "HTTP1", true: "HTTP2"}[front], func(t *testing.T) {
				test(t, func(h http.Handler, change ...func(*http.Server)) *httptest.Server {
					return proxied(t, front, serve(t, http2, h, change...))
				})
			})
		}
	}
}

func get(t testing.TB, s *httptest.Server) *http.Response {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(res.Status, res.Header)
	}
	return res
}

// The header must arrive before any event, and each event before the next one is sent.
func TestAtOnce(t *testing.T) {
	each(t, func(t *testing.T, serve func(http.Handler, ...func(*http.Server)) *httptest.Server) {
		next := make(chan Event)
		s := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stream := NewWriter(w, WriterOptions{})
			defer stream.Close()
			if err := stream.Open(); err != nil {
				t.Error(err)
			}
			i := 0
			for e := range next {
				if i++; i%2 == 0 && stream.TrySend(e) {
					continue
				}
				if err := stream.Send(e); err != nil {
					t.Error(err)
				}
			}
		}))
		res := get(t, s)
		events := NewReader(res.Body, 0)
		for _, size := range []int{1, 10, 100, 5000, 20_000, 1 << 20, 1, 2} {
			sent := Event{ID: fmt.Sprint(size), HasID: true, Data: []byte(strings.Repeat("x", size))}
			next <- sent
			if e, err := events.Next(); err != nil || text(e) != text(sent) {
				t.Fatalf("%.100s %v", text(e), err)
			}
		}
		close(next)
		if _, err := events.Next(); err != io.EOF {
			t.Error("the stream was not ended properly:", err)
		}
	})
}

// A client that reads nothing must be cut off, must not block others, and can tell that it was cut
// off.
func TestSlowReaderOverHTTP(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			writers := make(chan *Writer)
			s := serve(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				stream := NewWriter(w, WriterOptions{WriteTimeout: 2 * time.Second, MaxQueue: 256 << 10})
				_ = stream.Open()
				writers <- stream
				<-stream.Done()
				_ = stream.Close()
			}))
			slow, stuck := get(t, s), <-writers
			quick, fine := get(t, s), <-writers
			events := NewReader(quick.Body, 0)
			encoded := Encode(Event{Data: []byte(strings.Repeat("x", 10_000))})
			alive, rounds := true, 0 // rounds of the other stream while the queue is full
			began := time.Now()
			for alive {
				if time.Since(began) > polltest.Limit {
					t.Fatal("a stream without a reader is still open")
				}
				queued := stuck.TrySendEncoded(encoded)
				if err := fine.SendEncoded(encoded); err != nil {
					t.Fatal(err)
				}
				if _, err := events.Next(); err != nil {
					t.Fatal(err)
				}
				if !queued {
					rounds++
				}
				select {
				case <-stuck.Done():
					alive = false
				default:
				}
			}
			if rounds == 0 {
				t.Error("the other stream sent nothing while this one was stuck")
			}
			if err := stuck.Err(); !errors.Is(err, ErrCutOff) {
				t.Error(err)
			}
			rest := NewReader(slow.Body, 0)
			var err error
			for err == nil {
				_, err = rest.Next()
			}
			if err == io.EOF {
				t.Error("what was cut looks as if it had ended")
			}
			if err := fine.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// If a client disconnects, the stream must end at the next write, at the latest a keep-alive.
func TestClientGoes(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error)
			s := serve(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				stream := NewWriter(w, WriterOptions{KeepAlive: 10 * time.Millisecond})
				_ = stream.Open()
				<-stream.Done()
				ended <- stream.Close()
			}))
			get(t, s).Body.Close()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the stream ended well")
				}
			case <-time.After(time.Minute):
				t.Fatal("the stream is still open")
			}
		})
	}
}
