package floor

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/internal/floor"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// OneHop is a stricter floor: it passes each frame through one channel per direction and handles it
// on the goroutine that receives it. It has no HTTP and no process of its own.
type OneHop struct{ unused }

// Name implements peer.Peer.
func (OneHop) Name() string { return "one hop" }

// Remarks implements peer.Peer.
func (OneHop) Remarks() []string {
	return []string{"It passes each frame through one channel per direction and handles it on the receiving goroutine. It checks nothing, as the floor does."}
}

// NewServer implements peer.Peer.
func (OneHop) NewServer(tools int) peer.Server {
	return &oneHopServer{list: Tools(tools), asked: make(chan asked)}
}

// Dial implements peer.Peer.
func (OneHop) Dial(_ context.Context, t peer.Target, _ peer.Era) (peer.Session, error) {
	switch {
	case t.Stream != nil:
		return &oneHopStream{link: floor.Lines(t.Stream)}, nil
	case t.OnChange != nil:
		return t.Server.(*oneHopServer).listen(t.OnChange), nil
	}
	return t.Server.(*oneHopServer).connect(), nil
}

// Direct is the strictest floor: the caller's goroutine encodes, decodes, encodes and decodes.
type Direct struct{ unused }

// Name implements peer.Peer.
func (Direct) Name() string { return "direct" }

// Remarks implements peer.Peer.
func (Direct) Remarks() []string {
	return []string{"The caller's goroutine encodes and decodes both frames. It checks nothing, as the floor does."}
}

// NewServer implements peer.Peer.
func (Direct) NewServer(tools int) peer.Server { return &oneHopServer{list: Tools(tools)} }

// Dial implements peer.Peer.
func (Direct) Dial(_ context.Context, t peer.Target, _ peer.Era) (peer.Session, error) {
	s := t.Server.(*oneHopServer)
	return &exchanging{exchange: func(frame []byte) []byte { return s.answer(&floor.Worker{}, frame) }, end: func() {}}, nil
}

// unused has the parts of a peer that these floors do not use.
type unused struct{}

// Module implements peer.Peer.
func (unused) Module() string { return "" }

// asked is a request and the channel for its answer.
type asked struct {
	frame  []byte
	answer chan []byte
}

type oneHopServer struct {
	list  mcp.ListToolsResult
	asked chan asked

	mu        sync.Mutex
	listeners []chan []byte
}

func (s *oneHopServer) answer(w *floor.Worker, frame []byte) []byte {
	if !rawjson.Is(rawjson.Lookup(frame, "method"), "tools/list") {
		return w.Answer(frame)
	}
	b := bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"result":`)
	if err := json.MarshalWrite(b, s.list); err != nil {
		panic(err)
	}
	return append(b.Bytes(), '}')
}

// connect starts the receiving goroutines and returns a client.
func (s *oneHopServer) connect() *exchanging {
	var serving sync.WaitGroup
	for range workers {
		serving.Go(func() {
			var w floor.Worker
			for r := range s.asked {
				r.answer <- s.answer(&w, r.frame)
			}
		})
	}
	answers := sync.Pool{New: func() any { return make(chan []byte, 1) }}
	return &exchanging{
		exchange: func(frame []byte) []byte {
			answer := answers.Get().(chan []byte)
			s.asked <- asked{frame, answer}
			defer answers.Put(answer)
			return <-answer
		},
		end: func() { close(s.asked); serving.Wait() },
	}
}

// exchanging is a client that exchanges a request for its answer.
type exchanging struct {
	exchange func([]byte) []byte
	end      func()
}

// Call implements peer.Session.
func (c *exchanging) Call(_ context.Context, message string) (string, error) {
	return floor.Text(c.exchange(floor.Request(message))), nil
}

// List implements peer.Session.
func (c *exchanging) List(context.Context) (int, error) {
	var list mcp.ListToolsResult
	err := json.Unmarshal(rawjson.Lookup(c.exchange([]byte(ListBody)), "result"), &list)
	return len(list.Tools), err
}

// Close implements peer.Session.
func (c *exchanging) Close() error { c.end(); return nil }

// Serve implements peer.Server: it answers each line on the goroutine that reads it.
func (s *oneHopServer) Serve(_ context.Context, rwc io.ReadWriteCloser) error {
	l := floor.Lines(rwc)
	var w floor.Worker
	for {
		frame, err := l.Read()
		if err != nil {
			return rwc.Close()
		}
		if err := l.Write(s.answer(&w, frame)); err != nil {
			return err
		}
	}
}

// oneHopStream is a client on a stream, whose caller reads the answer itself. It makes one call at
// a time.
type oneHopStream struct{ link floor.Link }

// Call implements peer.Session.
func (s *oneHopStream) Call(_ context.Context, message string) (string, error) {
	if err := s.link.Write(floor.Request(message)); err != nil {
		return "", err
	}
	frame, err := s.link.Read()
	return floor.Text(frame), err
}

// List implements peer.Session.
func (*oneHopStream) List(context.Context) (int, error) { return 0, errUnused }

// Close implements peer.Session.
func (s *oneHopStream) Close() error { return s.link.Close() }

// listen returns a client whose only goroutine reads, scans and delivers changes.
func (s *oneHopServer) listen(changed func()) peer.Session {
	changes := make(chan []byte, 64)
	s.mu.Lock()
	s.listeners = append(s.listeners, changes)
	s.mu.Unlock()
	var reading sync.WaitGroup
	reading.Go(func() {
		for frame := range changes {
			meta := rawjson.Lookup(rawjson.Lookup(frame, "params"), "_meta")
			if rawjson.Lookup(meta, "io.modelcontextprotocol/subscriptionId") != nil {
				changed()
			}
		}
	})
	return &exchanging{end: func() { close(changes); reading.Wait() }}
}

// Change implements peer.Server.
func (s *oneHopServer) Change() { s.send([]byte(change)) }

// Update implements peer.Updater.
func (s *oneHopServer) Update() { s.send([]byte(update)) }

const update = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"uri":"` + peer.Watched + `"}}`

func (s *oneHopServer) send(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l <- frame
	}
}

const errUnused = peer.Unable("This floor has only what is measured beside it.")

// Stdio implements peer.Server.
func (*oneHopServer) Stdio(context.Context) error { return errUnused }

// Handler implements peer.Server.
func (*oneHopServer) Handler(peer.Era, bool) (http.Handler, error) { return nil, errUnused }
