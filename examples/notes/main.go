// Command notes serves notes over HTTP, to clients of every protocol revision on one address. A
// tool changes a note, and clients that watch the note are notified.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A notebook keeps the note of each day in memory. Handlers run concurrently, so a lock guards it.
type notebook struct {
	server *server.Server

	mu    sync.Mutex
	texts map[string]string
}

func (n *notebook) readNote(_ context.Context, v struct {
	Day string `uri:"day"`
}) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok := n.texts[v.Day]
	if !ok {
		return "", fs.ErrNotExist // the client gets the protocol's error for an unknown resource
	}
	return text, nil
}

func (n *notebook) writeNote(_ context.Context, in struct {
	Day  string `json:"day" pattern:"^[a-z]+$"`
	Text string `json:"text"`
}) (string, error) {
	n.mu.Lock()
	n.texts[in.Day] = in.Text
	n.mu.Unlock()
	n.server.Updated("notes://" + in.Day)
	return "written", nil
}

func newServer() *server.Server {
	s := server.New("notes", "1.0.0", nil)
	n := &notebook{server: s, texts: map[string]string{"today": "milk, bread"}}
	server.Resource(s, "notes://{day}", "The note of a day.", n.readNote)
	server.Tool(s, "write_note", "Replaces the note of a day.", n.writeNote)
	return s
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	handler := streamable.Handler(newServer(), nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	web := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		web.Close()
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
