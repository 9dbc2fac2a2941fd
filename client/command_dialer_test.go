package client

import (
	"testing"

	"github.com/dowel-mcp/dowel/transport"
)

// commandDialer is a dialer of another package of this module that starts a process.
type commandDialer struct {
	transport.Dialer
	starts bool
}

func (d commandDialer) StartsCommand() bool { return d.starts }

// The limits of a command apply to each dialer that starts a process.
func TestDialersThatStartCommands(t *testing.T) {
	for _, starts := range []bool{true, false} {
		if got, err := parseTarget(commandDialer{starts: starts}, Options{}); err != nil || got.isCommand != starts {
			t.Errorf("StartsCommand %v: isCommand is %v, %v", starts, got.isCommand, err)
		}
	}
}
