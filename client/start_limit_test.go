package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/startphase"
)

// The limit of the start stands still during an install, which has its own, and during a login,
// which has none.
func TestStartLimit(t *testing.T) {
	t.Parallel()
	installing, login := startphase.Phase{Runner: "npx"}, startphase.Phase{LoginURL: "https://login.example"}
	for name, tt := range map[string]struct {
		phases []startphase.Phase // each lasts 50 seconds
		want   time.Duration
		text   string
	}{
		"server":                  {nil, time.Minute, "no connection within 1m0s"},
		"install":                 {[]startphase.Phase{installing}, 10 * time.Minute, "the install has not finished within 10m0s"},
		"install, then server":    {[]startphase.Phase{installing, {}}, 110 * time.Second, "no connection within 1m0s"},
		"server, then a login":    {[]startphase.Phase{{}, login, {}}, 110 * time.Second, "no connection within 1m0s"},
		"two parts of an install": {[]startphase.Phase{installing, {Runner: "npx", Activity: "git"}, {}}, 160 * time.Second, "no connection within 1m0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &connection{isCommand: true, connectLimit: time.Minute, installLimit: 10 * time.Minute}
			ctx, cancel := c.withDialLimit(t.Context())
			defer cancel()
			began := time.Now()
			go func() {
				for _, p := range tt.phases {
					startphase.Report(ctx, p)
					time.Sleep(50 * time.Second)
				}
			}()
			<-ctx.Done()
			synctest.Wait()
			err := context.Cause(ctx)
			if took := time.Since(began); took != tt.want || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v after %v, want %q after %v", name, err, took, tt.text, tt.want)
			}
			time.Sleep(time.Hour) // the goroutine ends
		})
	}
}

// The limits of a call do not count the time of a login.
func TestCallLimitsStopDuringALogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Client{}
		c.opts.Limits.Total = time.Minute
		ctx, k := c.startClock(t.Context(), "tools/call", &CallOptions{})
		defer c.stopClock(k)
		startphase.Report(ctx, startphase.Phase{LoginURL: "https://as.example"})
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("the login counted")
		}
		startphase.Report(ctx, startphase.Phase{})
		startphase.Report(ctx, startphase.Phase{})
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("the limit has not ended the call")
		}
	})
}
