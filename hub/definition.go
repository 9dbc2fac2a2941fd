package hub

import (
	"time"

	"github.com/dowel-mcp/dowel/client"
)

// Definition says what an upstream is. Two definitions with the same fingerprint are the same running server.
type Definition struct {
	// Name is how users know the server, unique in a hub.
	Name string
	// Target is what [client.Dial] takes.
	Target any
	// Origin describes the target for people, without secrets: its command line or URL. Source says where the definition is
	// from, such as "project"; Note, what is to be known of it while the server runs.
	Origin, Source, Note string
	// Hold is not zero where the server must not be started: [Disabled], [NeedsConfiguration] or [NeedsTrust].
	Hold Hold
	// Fingerprint stands for all that a running server depends on: it is restarted when that changes, and keeps running
	// when anything else does.
	Fingerprint string

	// Options are how the server is connected to. The hub sets what is its own: questions, states and restarts.
	Options client.Options
	// Sharing says who uses the same connection.
	Sharing Sharing
	// Idle and Total are the limits of calls without limits of their own; progress is a sign of life. 0: none.
	Idle, Total time.Duration
	// Rules change what of the server is offered, and how.
	Rules Rules

	// Lazy does not start the server before it is needed, where it is known what it offers.
	Lazy bool
	// IdleStop ends a server that nobody has called for so long; the next call starts it. 0: never.
	IdleStop time.Duration
	// WatchPaths are files, folders and patterns: a change of one restarts the server.
	WatchPaths []string

	// Linger is how long calls in flight may go on when the server is restarted or becomes another one, for targets that go on
	// beside the next. 0: they are cut off.
	Linger time.Duration

	// Mask replaces secrets in what is shown of the server. nil: there are none.
	Mask func(string) string
}

// Hold says why a server is not started.
type Hold struct {
	Status Status
	Reason string
}

// Sharing says who uses the same connection to an upstream.
type Sharing int

const (
	// Shared is one connection for all.
	Shared Sharing = iota
	// SharePerClient is one for each client: a principal, or a session, or a connection.
	SharePerClient
	// SharePerSession is one for each session or connection, also where one principal has several.
	SharePerSession
)

// Rules change what of an upstream is offered. Names are the server's own.
type Rules struct {
	// Only are the tools that are offered; nil: all. Hide are tools that are not. Both take patterns as path.Match does.
	Only, Hide []string
	// Rename gives tools other names, and Describe other descriptions.
	Rename, Describe map[string]string
}

func (d *Definition) mask(text string) string {
	if d.Mask == nil {
		return text
	}
	return d.Mask(text)
}
