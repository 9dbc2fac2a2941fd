package journal

import (
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Leg is a side of dowel.
type Leg uint8

const (
	ClientLeg Leg = iota // between a client and dowel
	ServerLeg            // between dowel and a server
)

// String returns "client" or "server".
func (l Leg) String() string { return [...]string{"client", "server"}[l] }

// Kind is the kind of a frame.
type Kind uint8

const (
	Request      Kind = iota
	Response          // a result or an error
	Notification      // a message without an id
	Batch             // several messages in one frame
	Stray             // not a message, such as a print on stdout
)

// String returns the word for users and filters.
func (k Kind) String() string {
	return [...]string{"request", "response", "note", "batch", "stray"}[k]
}

// Status is the state of an operation, or the outcome that a response tells.
type Status string

const (
	Pending   Status = "pending"    // the server has not answered yet
	Asked     Status = "asked"      // a user, a model or the client is asked for input
	OK        Status = "ok"         // a result
	ToolError Status = "tool-error" // a result with isError
	Failed    Status = "error"      // an error of the server
	Refused   Status = "refused"    // an error of dowel: no server got the request
	Cancelled Status = "cancelled"  // the client does not wait any more
	Late      Status = "late"       // a response after the end of its operation
	Lost      Status = "lost"       // the operation was forgotten before it ended
)

// Statuses returns all values of [Status].
func Statuses() []Status {
	return []Status{Pending, Asked, OK, ToolError, Failed, Refused, Cancelled, Late, Lost}
}

// Frame is a recorded frame. It must not be changed.
type Frame struct {
	Time      time.Time
	Leg       Leg
	Direction framesink.Direction // seen from dowel
	Kind      Kind
	// Conn numbers the connections. Over HTTP it is the connection of HTTP.
	Conn uint64
	// Client is the name of the client on the client leg, or "" if unknown. Server is the name of
	// the server on the server leg.
	Client, Server string
	Revision       mcp.Revision // or "" before the handshake
	// Method of a response is the method of its request. Name is the tool, prompt or URI
	// in a request.
	Method, Name string
	ID           jsonrpc.ID
	// Operation is the operation that the frame belongs to, or 0.
	Operation uint64
	// Mark is the mark that a client has given its call (see package callmark), or "".
	Mark string
	// Size is the size of the frame in bytes. Body holds all of it or its beginning, without
	// secrets.
	Size int
	Body []byte
	// Header holds the HTTP header fields without secrets, or nil.
	Header map[string][]string
	// Status and Took belong to a response. Took is the time since its request.
	Status Status
	Took   time.Duration
}

// IsCut reports whether the body is incomplete. Masking may change the length of a body that is
// complete.
func (f *Frame) IsCut() bool { return f.Size > MaxBody && len(f.Body) <= MaxBody }

// Operation is the state of an operation after one of its frames. It must not be changed.
type Operation struct {
	// ID is the sequence number of the operation's first frame.
	ID    uint64
	Start time.Time
	// End is the time of the last frame, or zero while the operation is pending or asked.
	End time.Time
	// Client is the name of the client, or "dowel" for what dowel asks of a server itself. Server
	// is the server that got the request, or "".
	Client, Server string
	Method, Name   string
	Status         Status
	// Error is the text of an error.
	Error string
	// InServer is the time in which a server worked, InUser the time in which a question waited
	// for its answer, and InDowel the rest of the operation's time.
	InServer, InUser, InDowel time.Duration
	// Rounds counts the requests of the client, Calls those to servers.
	Rounds, Calls               int
	Questions, Progress, Frames int
	// Received and Sent are the bytes of the client's requests and of dowel's answers.
	Received, Sent int
}

// Took returns the time of the operation so far.
func (o *Operation) Took() time.Duration { return o.InServer + o.InUser + o.InDowel }

// IsOpen reports whether the operation has not ended.
func (o *Operation) IsOpen() bool { return o.Status == Pending || o.Status == Asked }

// Record is an entry of the journal: either a frame, or the state of an operation after a change.
type Record struct {
	Seq       uint64 // rises by 1, or by more after a gap
	Frame     *Frame
	Operation *Operation
}

// size estimates the memory of a record.
func (r Record) size() int {
	const fixed = 256
	if r.Frame == nil {
		return fixed
	}
	return fixed + len(r.Frame.Body) + 64*len(r.Frame.Header)
}
