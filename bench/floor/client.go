package floor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/internal/floor"
	"github.com/dowel-mcp/dowel/internal/floor/floorhttp"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Dial implements peer.Peer.
func (Peer) Dial(_ context.Context, t peer.Target, _ peer.Era) (peer.Session, error) {
	if t.URL != "" {
		return &posting{floorhttp.Poster{URL: t.URL, Client: &http.Client{Transport: documents{t.HTTP.Transport}}}}, nil
	}
	if t.OnChange != nil {
		return t.Server.(*server).listen(t.OnChange), nil
	}
	l, wait, err := Connect(t, func(l floor.Link) { t.Server.(*server).serve(l) })
	if err != nil {
		return nil, err
	}
	return &session{floor.NewClient(l), wait}, nil
}

// Connect returns a link to a target. wait waits until the server at the other end has ended. If
// the target is a server in this process, Connect calls serve on a goroutine.
func Connect(t peer.Target, serve func(floor.Link)) (l floor.Link, wait func() error, err error) {
	switch {
	case t.Server != nil:
		near, far := floor.Memory()
		served := make(chan struct{})
		go func() { defer close(served); serve(far) }()
		return near, func() error { <-served; return nil }, nil
	case t.Stream != nil:
		return floor.Lines(t.Stream), func() error { return nil }, nil
	}
	child := exec.Command(t.Command[0], t.Command[1:]...)
	child.Stderr = os.Stderr
	in, err1 := child.StdinPipe()
	out, err2 := child.StdoutPipe()
	if err := errors.Join(err1, err2, child.Start()); err != nil {
		return nil, nil, err
	}
	return floor.Lines(Both{out, in, in.Close}), child.Wait, nil
}

// session is a client on a link.
type session struct {
	*floor.Client
	wait func() error
}

// Call implements peer.Session.
func (s *session) Call(_ context.Context, message string) (string, error) {
	return s.Client.Call(message), nil
}

// List implements peer.Session.
func (s *session) List(context.Context) (int, error) {
	var list mcp.ListToolsResult
	err := s.Client.List(&list)
	return len(list.Tools), err
}

// Close implements peer.Session.
func (s *session) Close() error {
	s.Client.Close()
	return s.wait()
}

// posting is a client over HTTP.
type posting struct{ floorhttp.Poster }

// Call implements peer.Session.
func (p *posting) Call(_ context.Context, message string) (string, error) {
	return p.Poster.Call(message), nil
}

// ListBody asks for the list of tools.
const ListBody = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"floor","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// PostList posts ListBody and returns the answer.
func PostList(client *http.Client, url string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(ListBody)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", string(peer.Modern))
	r.Header.Set("Mcp-Method", "tools/list")
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	frame := make([]byte, resp.ContentLength)
	_, err = io.ReadFull(resp.Body, frame)
	return frame, err
}

// List implements peer.Session.
func (p *posting) List(context.Context) (int, error) {
	frame, err := PostList(p.Client, p.URL)
	if err != nil {
		return 0, err
	}
	var list mcp.ListToolsResult
	err = json.Unmarshal(rawjson.Lookup(frame, "result"), &list)
	return len(list.Tools), err
}

// Close implements peer.Session.
func (p *posting) Close() error { return nil }

// listening is a client that receives changes: one goroutine reads and scans them, and another
// calls OnChange.
type listening struct {
	near floor.Link
	done sync.WaitGroup
}

func (s *server) listen(changed func()) *listening {
	near, far := floor.Memory()
	s.mu.Lock()
	s.listeners = append(s.listeners, far)
	s.mu.Unlock()
	l := &listening{near: near}
	heard := make(chan struct{}, 1)
	l.done.Go(func() {
		defer close(heard)
		for {
			frame, err := near.Read()
			if err != nil {
				return
			}
			meta := rawjson.Lookup(rawjson.Lookup(frame, "params"), "_meta")
			if rawjson.Lookup(meta, "io.modelcontextprotocol/subscriptionId") != nil {
				heard <- struct{}{}
			}
		}
	})
	l.done.Go(func() {
		for range heard {
			changed()
		}
	})
	return l
}

// Call implements peer.Session.
func (*listening) Call(context.Context, string) (string, error) { return "", errListening }

// List implements peer.Session.
func (*listening) List(context.Context) (int, error) { return 0, errListening }

var errListening = errors.New("a client of the floor that listens does nothing else")

// Close implements peer.Session.
func (l *listening) Close() error {
	l.near.Close()
	l.done.Wait()
	return nil
}
