package mcptest

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcptest/wire"
	"github.com/dowel-mcp/dowel/transport"
)

// ClientTap returns a tap for [transport.ClientOptions] that fails the test for each message, of either side, that the
// protocol does not allow there. It follows one connection after the other, not several at a time.
func ClientTap(t testing.TB, opts ...wire.Options) transport.Tap {
	return tap(t, wire.Client, false, opts)
}

// ServerTap is [ClientTap] for [transport.ServerOptions].
func ServerTap(t testing.TB, opts ...wire.Options) transport.Tap {
	return tap(t, wire.Server, false, opts)
}

// ClientSentTap is [ClientTap] for a peer that may send anything: only what the client sends fails the test.
// [wire.ResponseID] and [wire.AfterEnd] are off: what is answered may be no message, and cancelled on its way.
func ClientSentTap(t testing.TB, opts ...wire.Options) transport.Tap {
	return tap(t, wire.Client, true, opts)
}

// ServerSentTap is [ClientSentTap] for [transport.ServerOptions].
func ServerSentTap(t testing.TB, opts ...wire.Options) transport.Tap {
	return tap(t, wire.Server, true, opts)
}

func tap(t testing.TB, here wire.Role, sentOnly bool, opts []wire.Options) transport.Tap {
	var o wire.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if sentOnly {
		o.Off = append(slices.Clip(o.Off), wire.ResponseID, wire.AfterEnd)
	}
	var connection atomic.Pointer[wire.Checker]
	connection.Store(wire.NewChecker(o))
	return func(f transport.Frame) {
		from, judged := here, true
		if f.Kind != transport.Sent {
			from, judged = 1-here, !sentOnly
		}
		if f.Kind == transport.Malformed && !sentOnly {
			return
		}
		if f.Kind != transport.Malformed && from == wire.Client && begins(f.Data) {
			connection.Store(wire.NewChecker(o))
		}
		// What is not judged is followed all the same: it decides what the answers to it may be.
		for _, err := range connection.Load().Frame(from, append([]byte(nil), f.Data...)) {
			if judged {
				t.Error(err)
			}
		}
	}
}

// begins tells the first request of a connection that may have one before it.
func begins(frame []byte) bool {
	switch string(rawjson.Lookup(frame, "method")) {
	case `"initialize"`, `"server/discover"`:
		return string(rawjson.Lookup(frame, "id")) == "1" // dowel's client counts from there, and may try both
	}
	return false
}
