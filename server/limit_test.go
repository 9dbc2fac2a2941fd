package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limit{PerSecond: 0.5, Burst: 2})
		ann, bob := mcp.Principal{ID: "ann"}, mcp.Principal{ID: "bob"}
		for range 2 {
			if err := l.allow(ann); err != nil {
				t.Error(err)
			}
		}
		for range 3 { // what is refused costs nothing
			if err := l.allow(ann); err == nil || err.Error() != "rate limit exceeded: try again in 2s" {
				t.Errorf("got %v", err)
			}
		}
		if err := l.allow(bob); err != nil {
			t.Error("bob pays for ann")
		}
		time.Sleep(2 * time.Second)
		if err := l.allow(ann); err != nil {
			t.Error(err)
		}
	})
	if newLimiter(Limit{}).allow(mcp.Principal{}) != nil {
		t.Error("a limit that nobody has set")
	}
}

func TestLimiterForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limit{PerSecond: 1})
		for n := range 10 * firstSweep {
			if n%firstSweep == 0 {
				time.Sleep(time.Second)
			}
			if err := l.allow(mcp.Principal{ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(l.by); n > 2*firstSweep {
			t.Errorf("%d limiters are kept", n)
		}
		if err := l.allow(mcp.Principal{ID: fmt.Sprint(10*firstSweep - 1)}); err == nil {
			t.Error("one in use was forgotten")
		}
	})
}
