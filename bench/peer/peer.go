// Package peer defines the interface through which the benchmark uses every implementation of the
// protocol. Each has one typed echo tool, written as a user of that implementation would write it.
// If the implementation can validate input, validation is on.
package peer

import (
	"context"
	"io"
	"net/http"
)

// Era is one of the protocol's two eras, represented by a revision.
type Era string

// The eras.
const (
	Modern Era = "2026-07-28"
	Legacy Era = "2025-11-25"
)

// Peer is an implementation of the protocol. Its methods can be called concurrently.
type Peer interface {
	// Name returns the implementation's name in the tables.
	Name() string
	// Module returns the path of the measured Go module, or "" for a floor. The report states its
	// version.
	Module() string
	// Remarks returns sentences about differences from the other implementations, for the reader of
	// the tables.
	Remarks() []string
	// NewServer returns a server with this many tools: echo, and others of a usual size.
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
	// Handler returns the server's HTTP endpoint for clients of the era. It answers calls with
	// event streams if stream is set, and with JSON documents otherwise.
	Handler(era Era, stream bool) (http.Handler, error)
	// Change sends one change to every subscribed client.
	Change()
}

// Target says how a client reaches its server. Exactly one of the first four fields is set.
type Target struct {
	Server  Server // of the same peer, in this process
	Stream  io.ReadWriteCloser
	Command []string
	URL     string

	HTTP     *http.Client // for URL
	OnChange func()       // called for every change that the client receives; nil: no subscription
	Updates  bool         // the changes are updates of Watched, by an [Updater]; OnChange is set
}

// Updater is a server that can announce an update of [Watched] to every client that subscribed to
// it.
type Updater interface{ Update() }

// Session is a client that is connected. It is safe for concurrent use.
type Session interface {
	// Call calls the echo tool and returns the text of its result.
	Call(ctx context.Context, message string) (string, error)
	// List returns how many tools the server has, all pages together, each decoded.
	List(ctx context.Context) (int, error)
	Close() error
}

// Unable is the error of a peer that does not support the measured work. Its text is the footnote
// that says why.
type Unable string

func (u Unable) Error() string { return string(u) }

// Echo has the arguments of the echo tool, for the floors.
type Echo struct {
	Message string `json:"message"`
}

// The description of echo, and the name and description of the other tools.
const (
	EchoDescription   = "Says it again."
	SearchName        = "search_issues_%d"
	SearchDescription = "Searches issues and pull requests in repositories that the user can see. Supports qualifiers such as is:open and label:bug."
)

// Watched is the resource of which Change announces an update, for peers that announce updates of
// resources.
const Watched = "bench://watched"
