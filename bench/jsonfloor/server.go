package jsonfloor

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	floored "github.com/dowel-mcp/dowel/bench/floor"
	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/internal/floor"
	"github.com/dowel-mcp/dowel/mcp"
)

const workers = 64

type server struct {
	peer.Server // the floor's, for changes
	tools       []mcp.Tool
	open        floored.Open
}

func newServer(tools int) *server {
	return &server{Server: floored.Peer{}.NewServer(1), tools: floored.Tools(tools).Tools}
}

// serve answers requests: each is handed to a worker.
func (s *server) serve(l floor.Link) {
	work := make(chan []byte)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for frame := range work {
				_ = l.Write(s.answer(frame)) // fails only if the client has closed
			}
		})
	}
	for {
		frame, err := l.Read()
		if err != nil {
			break
		}
		work <- frame
	}
	close(work)
	wg.Wait()
}

// Stdio implements peer.Server.
func (s *server) Stdio(ctx context.Context) error {
	return s.Serve(ctx, floored.Both{Reader: os.Stdin, Writer: os.Stdout, End: os.Stdin.Close})
}

// Serve implements peer.Server.
func (s *server) Serve(_ context.Context, rwc io.ReadWriteCloser) error {
	l, err := floored.Greet(floor.Lines(rwc))
	if err == nil {
		s.serve(l)
	}
	return rwc.Close()
}

// Handler implements peer.Server.
func (s *server) Handler(era peer.Era, stream bool) (http.Handler, error) {
	calls := http.Handler(http.HandlerFunc(s.serveHTTP))
	if stream {
		calls = floored.Events(calls)
	}
	return s.open.Before(calls, http.HandlerFunc(s.serveHTTP), era), nil
}

func (s *server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		panic(err)
	}
	answer := s.answer(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
}

// Change implements peer.Server.
func (s *server) Change() {
	s.Server.Change()
	s.open.Send(floored.Change())
}
