package jsonfloor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	floored "github.com/dowel-mcp/dowel/bench/floor"
	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/internal/floor"
)

// Dial implements peer.Peer.
func (Peer) Dial(ctx context.Context, t peer.Target, era peer.Era) (peer.Session, error) {
	if t.URL != "" {
		return &posting{t.URL, &http.Client{Transport: floored.Documents(t.HTTP.Transport)}}, nil
	}
	if t.OnChange != nil {
		t.Server = t.Server.(*server).Server
		return floored.Peer{}.Dial(ctx, t, era)
	}
	l, wait, err := floored.Connect(t, func(l floor.Link) { t.Server.(*server).serve(l) })
	if err != nil {
		return nil, err
	}
	s := &session{link: l, wait: wait, pending: map[int]chan response{}}
	s.reading.Go(s.read)
	return s, nil
}

// session is a client on a link.
type session struct {
	link    floor.Link
	wait    func() error
	reading sync.WaitGroup

	mu      sync.Mutex
	last    int
	pending map[int]chan response
}

func (s *session) read() {
	for {
		frame, err := s.link.Read()
		if err != nil {
			return
		}
		r, err := decode(frame)
		if err != nil {
			panic(err)
		}
		s.mu.Lock()
		answer := s.pending[r.ID]
		delete(s.pending, r.ID)
		s.mu.Unlock()
		answer <- r
	}
}

func (s *session) roundTrip(method string, message *string) (result, error) {
	answer := make(chan response, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.pending[id] = answer
	s.mu.Unlock()
	if err := s.link.Write(ask(id, method, message)); err != nil {
		return result{}, err
	}
	return (<-answer).Result, nil
}

// Call implements peer.Session.
func (s *session) Call(_ context.Context, message string) (string, error) {
	return text(s.roundTrip("tools/call", &message))
}

func text(r result, err error) (string, error) {
	if err == nil && len(r.Content) != 1 {
		err = errors.New("the result is not text")
	}
	if err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

// List implements peer.Session.
func (s *session) List(context.Context) (int, error) {
	r, err := s.roundTrip("tools/list", nil)
	return len(r.Tools), err
}

// Close implements peer.Session.
func (s *session) Close() error {
	s.link.Close()
	s.reading.Wait()
	return s.wait()
}

// posting is a client over HTTP.
type posting struct {
	url    string
	client *http.Client
}

func (p *posting) roundTrip(method string, message *string) (result, error) {
	r, err := http.NewRequest(http.MethodPost, p.url, bytes.NewReader(ask(1, method, message)))
	if err != nil {
		return result{}, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": string(peer.Modern), "Mcp-Method": method, "Mcp-Name": "echo",
	} {
		r.Header.Set(name, value)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return result{}, err
	}
	defer resp.Body.Close()
	frame, err := io.ReadAll(resp.Body)
	if err != nil {
		return result{}, err
	}
	got, err := decode(frame)
	return got.Result, err
}

// Call implements peer.Session.
func (p *posting) Call(_ context.Context, message string) (string, error) {
	return text(p.roundTrip("tools/call", &message))
}

// List implements peer.Session.
func (p *posting) List(context.Context) (int, error) {
	r, err := p.roundTrip("tools/list", nil)
	return len(r.Tools), err
}

// Close implements peer.Session.
func (p *posting) Close() error { return nil }
