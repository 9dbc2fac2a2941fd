package mcptest

import (
	"testing"

	"github.com/dowel-mcp/dowel/mcptest/wire"
	"github.com/dowel-mcp/dowel/transport"
)

// ClientTap returns a tap for [transport.ClientOptions] that fails the test for each message, of either side, that the
// protocol does not allow there.
func ClientTap(t testing.TB, opts ...wire.Options) transport.Tap {
	return tap(t, wire.Client, wire.Server, opts)
}

// ServerTap is [ClientTap] for [transport.ServerOptions].
func ServerTap(t testing.TB, opts ...wire.Options) transport.Tap {
	return tap(t, wire.Server, wire.Client, opts)
}

func tap(t testing.TB, here, there wire.Role, opts []wire.Options) transport.Tap {
	check := wire.NewChecker(opts...)
	return func(f transport.Frame) {
		from := here
		switch f.Kind {
		case transport.Received:
			from = there
		case transport.Stray:
			return
		}
		for _, err := range check.Frame(from, append([]byte(nil), f.Data...)) {
			t.Error(err)
		}
	}
}
