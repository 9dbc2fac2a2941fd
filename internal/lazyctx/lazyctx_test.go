package lazyctx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/internal/lazyctx"
)

type key struct{}

// isEnded reports whether Done of ctx is closed.
func isEnded(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

func TestContext(t *testing.T) {
	cause := errors.New("cause")
	for name, tt := range map[string]struct {
		end   func(c *lazyctx.Context, endParent context.CancelCauseFunc)
		err   error
		cause error
	}{
		"running":               {func(*lazyctx.Context, context.CancelCauseFunc) {}, nil, nil},
		"cancelled":             {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.Cancel(cause) }, context.Canceled, cause},
		"released":              {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.Release() }, context.Canceled, context.Canceled},
		"cancelled and release": {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.Cancel(cause); c.Release() }, context.Canceled, cause},
		"its parent ended":      {func(_ *lazyctx.Context, end context.CancelCauseFunc) { end(cause) }, context.Canceled, cause},
	} {
		for _, isUsedBefore := range []bool{false, true} {
			parent, endParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, 7))
			c := &lazyctx.Context{}
			c.Init(parent)
			var child context.Context = c
			if isUsedBefore {
				var stop context.CancelFunc
				child, stop = context.WithCancel(c)
				defer stop()
			}
			tt.end(c, endParent)
			for _, ctx := range []context.Context{c, child} {
				if ctx.Err() != tt.err || context.Cause(ctx) != tt.cause || isEnded(ctx) != (tt.err != nil) || ctx.Value(key{}) != 7 {
					t.Errorf("%s, used before %v: %v, %v, %v", name, isUsedBefore, ctx.Err(), context.Cause(ctx), ctx.Value(key{}))
				}
			}
			endParent(nil)
		}
	}
}

// A context allocates nothing until code waits for its end or cancels it.
func TestAllocations(t *testing.T) {
	c := &lazyctx.Context{}
	if got := testing.AllocsPerRun(100, func() {
		*c = lazyctx.Context{}
		c.Init(context.Background())
		if c.Err() != nil || c.Value(key{}) != nil {
			t.Error("it has ended")
		}
		c.Release()
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
