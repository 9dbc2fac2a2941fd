package dowel

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

type echo struct {
	Message string `json:"message" doc:"What to say"`
}

type search struct {
	Query   string   `json:"query" doc:"What to look for, in the syntax of the search box" minLength:"1" maxLength:"256"`
	Repos   []string `json:"repos,omitempty" doc:"Repositories to look in, owner/name"`
	Sort    string   `json:"sort,omitempty" doc:"How to order the results" enum:"created,updated,comments"`
	PerPage int      `json:"perPage,omitempty" doc:"Results per page" minimum:"1" maximum:"100"`
}

// Server is a server of dowel. It is exported for the measurements of the gateway.
type Server struct{ *server.Server }

func newServer(tools int) *Server {
	s := server.New("bench", "1", &server.Options{Logger: slog.New(slog.DiscardHandler), ListInterval: -1, Limit: server.Limit{PerSecond: -1}})
	server.Tool(s, "echo", peer.EchoDescription, func(_ context.Context, in echo) (string, error) { return in.Message, nil })
	for i := range tools - 1 {
		server.Tool(s, fmt.Sprintf(peer.SearchName, i), peer.SearchDescription,
			func(context.Context, search) (string, error) { return "", nil }, server.ToolOptions{Annotations: mcp.ReadOnly})
	}
	server.Resource(s, peer.Watched, "A resource that changes.", func(context.Context, struct{}) (string, error) { return "", nil })
	return &Server{s}
}

// Stdio implements peer.Server.
func (s *Server) Stdio(ctx context.Context) error { return stdio.Serve(ctx, s.Server) }

// Serve implements peer.Server.
func (s *Server) Serve(ctx context.Context, rwc io.ReadWriteCloser) error {
	return stdio.ServeStream(ctx, rwc, s.Server)
}

// Handler implements peer.Server.
func (s *Server) Handler(_ peer.Era, stream bool) (http.Handler, error) {
	many := transport.Limits{ClientSessions: 10_000, ClientStreams: 10_000} // one client has all sessions of a measurement
	endpoint := streamable.Handler(s.Server, &streamable.Options{ServerOptions: transport.ServerOptions{Quota: transport.NewQuota(many)}})
	if !stream {
		return endpoint, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r.Header["Accept"] = streamAlone
		}
		endpoint.ServeHTTP(w, r)
	}), nil
}

var streamAlone = []string{"text/event-stream"}

// Change implements peer.Server.
func (s *Server) Change() { s.ListChanged(server.KindTool) }

// Update implements peer.Updater.
func (s *Server) Update() { s.Updated(peer.Watched) }
