package client

import (
	"testing"

	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// wrapper dials another target in its own way.
type wrapper struct {
	transport.Dialer
	inner any
}

func (w wrapper) Inner() any { return w.inner }

func (w wrapper) Around(inner transport.Dialer) transport.Dialer { return wrapper{inner, w.inner} }

// A target that wraps another one has the limits, header fields and login of that one.
func TestWrappedTarget(t *testing.T) {
	for inner, isCommand := range map[any]bool{"https://example.com/mcp": false, &stdio.Command{Path: "x"}: true} {
		if c, ok := inner.(*stdio.Command); ok {
			inner = *c
		}
		got, err := parseTarget(wrapper{inner: inner}, Options{})
		if err != nil || got.isCommand != isCommand {
			t.Errorf("%v: isCommand is %v, %v", inner, got.isCommand, err)
		}
		if w, ok := got.dialer.(wrapper); !ok || w.Dialer == nil {
			t.Errorf("%v: the dialer is %#v, want the wrapper around a dialer", inner, got.dialer)
		}
	}
}
