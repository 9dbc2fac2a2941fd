package mcptest

import (
	"strings"
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
	return newTap(t, wiretest.Client, opts)
}

// ServerTap is [ClientTap] for [transport.ServerOptions].
func ServerTap(t testing.TB, opts ...TapOption) transport.Tap {
	return newTap(t, wiretest.Server, opts)
}

// TapOption changes what a tap checks. The zero value changes nothing.
type TapOption struct{ apply func(*tapOptions) }

type tapOptions struct {
	wiretest.Options
	sentOnly bool
}

// SentOnly is for a peer that may send anything: only messages that the tap's own side sends are
// reported. The checks response-id and after-end are off, because that side may answer a frame that
// is not a message, and a server may cancel a request while its answer is on the way. legacy is the
// revision of a connection that the tap does not see from its beginning, or that has no initialize.
func SentOnly(legacy ...mcp.Revision) TapOption {
	return TapOption{func(o *tapOptions) {
		for _, r := range legacy {
			withLegacyRevision(r).apply(o)
		}
		o.sentOnly = true
		o.Off = append(o.Off, wiretest.ResponseID, wiretest.AfterEnd)
	}}
}

// WithoutChecks switches off checks, by the names in the package comment. A name that begins with
// "client:" or "server:", such as "server:schema", switches the check off only for messages that
// this side sends. The test fails for an unknown name.
func WithoutChecks(names ...string) TapOption {
	return TapOption{func(o *tapOptions) {
		for _, name := range names {
			off := &o.Off
			if check, ok := strings.CutPrefix(name, "client:"); ok {
				name, off = check, &o.OffClient
			} else if check, ok := strings.CutPrefix(name, "server:"); ok {
				name, off = check, &o.OffServer
			}
			*off = append(*off, wiretest.Check(name))
		}
	}}
}

// withLegacyRevision sets the revision of a connection. It must be a legacy revision.
func withLegacyRevision(r mcp.Revision) TapOption {
	return TapOption{func(o *tapOptions) { o.Revision = string(r) }}
}

// withResultTypes allows further values of resultType, which an extension defines.
func withResultTypes(types ...string) TapOption {
	return TapOption{func(o *tapOptions) { o.ResultTypes = append(o.ResultTypes, types...) }}
}

func newTap(t testing.TB, ownRole wiretest.Role, opts []TapOption) transport.Tap {
	t.Helper()
	var o tapOptions
	for _, option := range opts {
		if option.apply != nil {
			option.apply(&o)
		}
	}
	if err := o.Validate(); err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	var checker atomic.Pointer[wiretest.Checker] // of the current connection
	checker.Store(wiretest.NewChecker(o.Options))
	return func(f transport.Frame) {
		from, isReported := ownRole, true
		if f.Kind != transport.Sent {
			from, isReported = 1-ownRole, !o.sentOnly
		}
		if f.Kind == transport.Malformed && !o.sentOnly {
			return
		}
		if f.Kind != transport.Malformed && from == wiretest.Client && startsConnection(f.Data) {
			checker.Store(wiretest.NewChecker(o.Options))
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
