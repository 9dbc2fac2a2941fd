package floor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/internal/floor"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

const workers = 64

// SearchSchema is the input schema of the tools beside echo.
const SearchSchema = `{"type":"object","properties":{"query":{"type":"string","description":"What to look for, in the syntax of the search box","minLength":1,"maxLength":256},"repos":{"type":"array","items":{"type":"string"},"description":"Repositories to look in, owner/name"},"sort":{"type":"string","description":"How to order the results","enum":["created","updated","comments"]},"perPage":{"type":"integer","description":"Results per page","minimum":1,"maximum":100}},"required":["query"],"additionalProperties":false}`

// Tools returns the list of tools of a server of the floor.
func Tools(n int) (list mcp.ListToolsResult) {
	schema := json.RawMessage(SearchSchema)
	for i := range n {
		list.Tools = append(list.Tools, mcp.Tool{
			Name: fmt.Sprintf(peer.SearchName, i), Description: peer.SearchDescription, InputSchema: schema, Annotations: mcp.ReadOnly,
		})
	}
	return list
}

type server struct {
	list mcp.ListToolsResult
	open Open

	mu        sync.Mutex
	listeners []floor.Link
}

func newServer(tools int) *server { return &server{list: Tools(tools)} }

func (s *server) serve(l floor.Link) {
	if len(s.list.Tools) > 1 {
		floor.ServeList(l, s.list)
		return
	}
	floor.Serve(l, workers)
}

// Stdio implements peer.Server.
func (s *server) Stdio(ctx context.Context) error {
	return s.Serve(ctx, Both{os.Stdin, os.Stdout, os.Stdin.Close})
}

// Serve implements peer.Server.
func (s *server) Serve(_ context.Context, rwc io.ReadWriteCloser) error {
	l, err := Greet(floor.Lines(rwc))
	if err == nil {
		s.serve(l)
	}
	return rwc.Close()
}

// Both is a stream in both directions.
type Both struct {
	io.Reader
	io.Writer
	End func() error
}

// Close implements io.Closer.
func (b Both) Close() error { return b.End() }

// greeted is a link that returns its first frame again.
type greeted struct {
	floor.Link
	first []byte
}

// Greet reads the first frame. If it is the handshake of a legacy client, Greet answers it;
// otherwise the returned link returns the frame again.
func Greet(l floor.Link) (floor.Link, error) {
	first, err := l.Read()
	if err != nil || !rawjson.Is(rawjson.Lookup(first, "method"), "initialize") {
		return &greeted{l, first}, err
	}
	hello := append([]byte(`{"jsonrpc":"2.0","id":`), rawjson.Lookup(first, "id")...)
	if err := l.Write(append(hello, `,"result":`+hello2025+`}`...)); err != nil {
		return nil, err
	}
	_, err = l.Read() // notifications/initialized
	return l, err
}

const hello2025 = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"floor","version":"1"}}`

func (g *greeted) Read() ([]byte, error) {
	if frame := g.first; frame != nil {
		g.first = nil
		return frame, nil
	}
	return g.Link.Read()
}

const change = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`

// Change implements peer.Server.
func (s *server) Change() {
	frame := []byte(change)
	s.mu.Lock()
	for _, l := range s.listeners {
		_ = l.Write(frame) // fails only if the client has closed
	}
	s.mu.Unlock()
	s.open.Send(Change())
}

// Change returns the event of a change.
func Change() []byte { return []byte("data: " + change + "\n\n") }
