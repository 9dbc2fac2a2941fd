package dowel

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// typed is the input of one of 1,000 tools: the digits make it a type of its own.
type typed[A, B, C any] struct {
	Query   string   `json:"query" doc:"What to look for, in the syntax of the search box" minLength:"1" maxLength:"256"`
	Repos   []string `json:"repos,omitempty" doc:"Repositories to look in, owner/name"`
	Sort    string   `json:"sort,omitempty" doc:"How to order the results" enum:"created,updated,comments"`
	PerPage int      `json:"perPage,omitempty" doc:"Results per page" minimum:"1" maximum:"100"`
}

// typedTools adds tools of different types to a server.
type typedTools struct {
	server *server.Server
	added  int
}

func newTypedServer() *Server {
	t := typedTools{server: server.New("bench", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})}
	for _, add := range []func(*typedTools){
		addHundred[peer.D0], addHundred[peer.D1], addHundred[peer.D2], addHundred[peer.D3], addHundred[peer.D4],
		addHundred[peer.D5], addHundred[peer.D6], addHundred[peer.D7], addHundred[peer.D8], addHundred[peer.D9],
	} {
		add(&t)
	}
	return &Server{t.server}
}

func addHundred[A any](t *typedTools) {
	for _, add := range []func(*typedTools){
		addTen[A, peer.D0], addTen[A, peer.D1], addTen[A, peer.D2], addTen[A, peer.D3], addTen[A, peer.D4],
		addTen[A, peer.D5], addTen[A, peer.D6], addTen[A, peer.D7], addTen[A, peer.D8], addTen[A, peer.D9],
	} {
		add(t)
	}
}

func addTen[A, B any](t *typedTools) {
	for _, add := range []func(*typedTools){
		addOne[A, B, peer.D0], addOne[A, B, peer.D1], addOne[A, B, peer.D2], addOne[A, B, peer.D3], addOne[A, B, peer.D4],
		addOne[A, B, peer.D5], addOne[A, B, peer.D6], addOne[A, B, peer.D7], addOne[A, B, peer.D8], addOne[A, B, peer.D9],
	} {
		add(t)
	}
}

func addOne[A, B, C any](t *typedTools) {
	server.Tool(t.server, fmt.Sprintf(peer.SearchName, t.added), peer.SearchDescription,
		func(context.Context, typed[A, B, C]) (string, error) { return "", nil }, server.ToolOptions{Annotations: mcp.ReadOnly})
	t.added++
}
