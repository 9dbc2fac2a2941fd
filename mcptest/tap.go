package mcptest

import (
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// ClientTap returns a tap for [transport.ClientOptions] that reports an error to t for each
// message, of either side, that breaks the protocol. The tap follows one connection after the
// other, not several at a time. By default, all checks are on.
func ClientTap(t testing.TB, opts ...TapOption) transport.Tap {
	return newTap(t, wiretest.Client, false, opts)
}

// ServerTap is [ClientTap] for [transport.ServerOptions].
func ServerTap(t testing.TB, opts ...TapOption) transport.Tap {
	return newTap(t, wiretest.Server, false, opts)
}

// ClientSentTap is [ClientTap] for a server that may send anything: it reports only messages that
// the client sends. The checks response-id and after-end are off, because the client may answer a
// frame that is not a message, and the server may cancel a request while its answer is on the way.
func ClientSentTap(t testing.TB, opts ...TapOption) transport.Tap {
	return newTap(t, wiretest.Client, true, opts)
}

// ServerSentTap is [ClientSentTap] for [transport.ServerOptions]: it reports only messages that the
// server sends.
func ServerSentTap(t testing.TB, opts ...TapOption) transport.Tap {
	return newTap(t, wiretest.Server, true, opts)
}

// TapOption changes what a tap checks. The zero value changes nothing.
type TapOption struct{ apply func(*wiretest.Options) }

// WithoutChecks switches off checks, by the names in the package comment. The test fails for an
// unknown name.
func WithoutChecks(names ...string) TapOption {
	return TapOption{func(o *wiretest.Options) { o.Off = appendChecks(o.Off, names) }}
}

// WithoutClientChecks is [WithoutChecks] for messages that the client sends.
func WithoutClientChecks(names ...string) TapOption {
	return TapOption{func(o *wiretest.Options) { o.OffClient = appendChecks(o.OffClient, names) }}
}

// WithoutServerChecks is [WithoutChecks] for messages that the server sends.
func WithoutServerChecks(names ...string) TapOption {
	return TapOption{func(o *wiretest.Options) { o.OffServer = appendChecks(o.OffServer, names) }}
}

// WithLegacyRevision sets the revision of a connection that the tap does not see from its
// beginning, or that has no initialize. It must be a legacy revision.
func WithLegacyRevision(r mcp.Revision) TapOption {
	return TapOption{func(o *wiretest.Options) { o.Revision = string(r) }}
}

// WithResultTypes allows further values of resultType, which an extension defines.
func WithResultTypes(types ...string) TapOption {
	return TapOption{func(o *wiretest.Options) { o.ResultTypes = append(o.ResultTypes, types...) }}
}

func appendChecks(checks []wiretest.Check, names []string) []wiretest.Check {
	for _, name := range names {
		checks = append(checks, wiretest.Check(name))
	}
	return checks
}

func newTap(t testing.TB, ownRole wiretest.Role, sentOnly bool, opts []TapOption) transport.Tap {
	t.Helper()
	var o wiretest.Options
	for _, option := range opts {
		if option.apply != nil {
			option.apply(&o)
		}
	}
	if err := o.Validate(); err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	if sentOnly {
		o.Off = append(o.Off, wiretest.ResponseID, wiretest.AfterEnd)
	}
	var checker atomic.Pointer[wiretest.Checker] // of the current connection
	checker.Store(wiretest.NewChecker(o))
	return func(f transport.Frame) {
		from, isReported := ownRole, true
		if f.Kind != transport.Sent {
			from, isReported = 1-ownRole, !sentOnly
		}
		if f.Kind == transport.Stray && !sentOnly {
			return
		}
		if f.Kind != transport.Stray && from == wiretest.Client && startsConnection(f.Data) {
			checker.Store(wiretest.NewChecker(o))
		}
		// Frames that are not reported are followed too: they decide which answers are allowed.
		for _, err := range checker.Load().Frame(from, append([]byte(nil), f.Data...)) {
			if isReported {
				t.Error(err)
			}
		}
	}
}

// startsConnection reports whether a client's frame is the first of its connection. Our client
// counts its ids from 1; it may send both requests with that id to find the server's era.
func startsConnection(frame []byte) bool {
	switch string(rawjson.Lookup(frame, "method")) {
	case `"initialize"`, `"server/discover"`:
		return string(rawjson.Lookup(frame, "id")) == "1"
	}
	return false
}
