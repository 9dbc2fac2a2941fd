// Package peer is what every implementation satisfies that is measured: one typed echo tool, written as a user of that
// implementation would write it, with validation of its input on where there is any.
package peer

import (
	"context"
	"io"
	"net/http"
)

// Era is a revision of the protocol that stands for its era.
type Era string

// The eras.
const (
	Modern Era = "2026-07-28"
	Legacy Era = "2025-11-25"
)

// Peer is an implementation of the protocol. Its methods can be called concurrently.
type Peer interface {
	// Name is what the tables call it.
	Name() string
	// Module is the Go module whose version the report states; empty for a floor.
	Module() string
	// Remarks are what it does otherwise than the others, in sentences for the reader of the tables.
	Remarks() []string
	// NewServer makes a server with that many tools: echo, and others of a usual size.
	NewServer(tools int) Server
	// Dial connects a client that speaks the era.
	Dial(context.Context, Target, Era) (Session, error)
}

// Server is a server of a peer.
type Server interface {
	// Stdio serves the process that started this one, until it closes standard input.
	Stdio(context.Context) error
	// Serve serves one client on a stream, until the client closes it.
	Serve(context.Context, io.ReadWriteCloser) error
	// Handler is the server's HTTP endpoint for clients of the era. It answers calls by event streams where stream is set, by
	// JSON documents where it is not.
	Handler(era Era, stream bool) (http.Handler, error)
	// Change tells every client that asked for it of one change.
	Change()
}

// Target is where a client finds its server: one of the first four is set.
type Target struct {
	Server  Server // of the same peer, in this process
	Stream  io.ReadWriteCloser
	Command []string
	URL     string

	HTTP     *http.Client // for URL
	OnChange func()       // is called for every change the client hears of; nil: it does not listen
}

// Session is a client that is connected. It is safe for concurrent use.
type Session interface {
	// Call calls the echo tool and returns the text of its result.
	Call(ctx context.Context, message string) (string, error)
	// List returns how many tools the server has, all pages together, each decoded.
	List(ctx context.Context) (int, error)
	Close() error
}

// Unable is the error of what a peer cannot do: the reason, in words for a footnote.
type Unable string

func (u Unable) Error() string { return string(u) }

// Echo is the arguments of the echo tool, for the floors.
type Echo struct {
	Message string `json:"message"`
}

// What the tools beside echo are called and say.
const (
	EchoDescription   = "Says it again."
	SearchName        = "search_issues_%d"
	SearchDescription = "Searches issues and pull requests in repositories that the user can see. Supports qualifiers such as is:open and label:bug."
)

// Watched is the resource that changes, where a peer tells of changes by one.
const Watched = "bench://watched"
