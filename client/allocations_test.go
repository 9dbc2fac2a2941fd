//go:build !race

package client_test

import (
	"context"
	"testing"

	"github.com/dowel-mcp/dowel/client"
)

// A small call has few allocations beside its round trip. The race detector adds some.
func TestCallAllocations(t *testing.T) {
	c := dialEcho(t, client.Options{})
	ctx := context.Background()
	in := &addIn{2, 3}
	got := testing.AllocsPerRun(1000, func() {
		if out, err := client.Call[sum](ctx, c, "add", in); err != nil || out.Sum != 5 {
			t.Fatal(out, err)
		}
	})
	if got > 6 {
		t.Errorf("%v allocations, want at most 6", got)
	}
}
