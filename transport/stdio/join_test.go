package stdio

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// discoverNothing answers server/discover.
func discoverNothing(context.Context, *mcp.Request) (*mcp.Result, error) {
	return &mcp.Result{ServerInfo: json.RawMessage(`{"name":"s","version":"1"}`), Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions()}}, nil
}

type plainReader struct{ io.Reader }

// A client and a server are connected by two pipes, and by readers that cannot be closed.
func TestJoin(t *testing.T) {
	for name, plain := range map[string]bool{"pipes": false, "plain readers": true} {
		t.Run(name, func(t *testing.T) {
			fromClient, toServer := io.Pipe()
			fromServer, toClient := io.Pipe()
			near, far := Join(fromServer, toServer), Join(fromClient, toClient)
			if plain {
				near, far = Join(plainReader{fromServer}, toServer), Join(plainReader{fromClient}, toClient)
			}
			served := make(chan error, 1)
			go func() { served <- ServeStream(context.Background(), far, mcp.HandlerFunc(discoverNothing)) }()
			tr, err := overconn.Connect(t.Context(), Conn(near, 0), nil, "", transport.ClientOptions{Revision: mcp.LatestRevision})
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// Close makes Read return, also if the reader cannot be closed, and closes both ends once.
func TestJoinCloses(t *testing.T) {
	for name, plain := range map[string]bool{"closer": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			r, feed := io.Pipe()
			defer feed.Close() // ends the goroutine that reads a plain reader
			a, b := net.Pipe()
			defer b.Close()
			s := Join(r, a)
			if plain {
				s = Join(plainReader{r}, a)
			}
			read := make(chan error, 1)
			go func() { _, err := s.Read(make([]byte, 1)); read <- err }()
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := <-read; err == nil {
				t.Error("Read has returned no error")
			}
			if _, err := s.Write([]byte("x")); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Error(err)
			}
		})
	}
}
