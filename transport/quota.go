package transport

import "github.com/dowel-mcp/dowel/internal/quota"

// Limits bound what clients can make a process hold by not reading, and by opening more and more.
// 0 means the default, and a negative number no limit. The fields with Client in their name bound
// each client, the others all of them together.
//
// A client is the principal of a request, and without one the connection.
type Limits struct {
	// Bytes bounds the messages that wait: answers and notifications that clients have not read,
	// responses that wait for the rest of their batch, and requests that have not arrived
	// completely. Events that clients may resume from count too, until others need the room. The
	// defaults are 256 MiB and 64 MiB for each client. Up to 16 KiB of a connection do not count,
	// and a single message may have any size.
	//
	// Where a message would exceed a limit, connections that have not read anything for two seconds
	// are cut off first: at the limit of a client its own, and at the other limit connections of
	// clients that hold at least as much already. If that is not enough, the call gets an error
	// instead of the answer, and an event stream ends.
	Bytes, ClientBytes int64
	// Streams bounds the open streams: subscriptions, event streams of legacy sessions, and
	// connections over HTTP+SSE and WebSocket. The defaults are 10,000 and 1,000 for each client. A
	// further one is refused, over HTTP with status 429 at the limit of a client, and otherwise
	// 503.
	Streams, ClientStreams int
	// Sessions bounds the sessions of legacy clients over Streamable HTTP. The defaults are 10,000
	// and 1,000 for each client. A further one takes the place of the client's session that has
	// been idle for longest. At the limit of the process, it may also take the place of an idle
	// session without a principal. If all are in use, it is refused like a stream.
	Sessions, ClientSessions int
	// Questions bounds the calls of a gateway that wait for a client's answer to a question of the
	// server. The defaults are 1,000 and 64 for each client. A further one takes the place of the
	// client's oldest. At the limit of the process, it takes the place of one without a principal,
	// or is refused.
	Questions, ClientQuestions int
}

// Quota counts what clients hold of a process and applies [Limits]. Endpoints that share a Quota
// share its limits; see [ServerOptions].
type Quota = quota.Quota

// NewQuota returns a quota with the limits.
func NewQuota(l Limits) *Quota { return quota.New(quota.Limits(l)) }
