package timeout_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
)

// call is a call with a clock. It notes which limit was exceeded, and when.
type call struct {
	timeout.Clock
	started time.Time
	limit   timeout.Limit
	after   time.Duration
}

func (c *call) Exceed(limit timeout.Limit, _ time.Duration) {
	c.limit, c.after = limit, time.Since(c.started)
}

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		name        string
		idle, total time.Duration
		during      func(c *call)
		limit       timeout.Limit
		after       time.Duration
	}{
		{"nothing happens", 3 * time.Second, 10 * time.Second, func(c *call) { time.Sleep(time.Minute) }, timeout.Idle, 3 * time.Second},
		{"no limits", 0, 0, func(c *call) { time.Sleep(time.Hour) }, 0, 0},
		{"it ends in time", 3 * time.Second, 0, func(c *call) { time.Sleep(2 * time.Second) }, 0, 0},
		{"signs of life", 3 * time.Second, 10 * time.Second, func(c *call) {
			for range 30 {
				time.Sleep(time.Second)
				c.Touch()
			}
		}, timeout.Total, 10 * time.Second},
		{"it waits for nothing", 3 * time.Second, 0, func(c *call) {
			c.SetWaiting(false)
			time.Sleep(time.Minute)
			c.SetWaiting(true)
			time.Sleep(time.Minute)
		}, timeout.Idle, 63 * time.Second},
		{"two questions", 3 * time.Second, 10 * time.Second, func(c *call) {
			time.Sleep(2 * time.Second)
			c.Pause()
			time.Sleep(30 * time.Second)
			c.Pause()
			c.Resume()
			time.Sleep(30 * time.Second)
			c.Resume()
			for range 30 {
				time.Sleep(2 * time.Second)
				c.Touch()
			}
		}, timeout.Total, 70 * time.Second},
		{"idle begins again after a question", 3 * time.Second, 0, func(c *call) {
			time.Sleep(2 * time.Second)
			c.Pause()
			time.Sleep(time.Minute)
			c.Resume()
			time.Sleep(time.Minute)
		}, timeout.Idle, 65 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &call{started: time.Now()}
				c.Start(tt.idle, tt.total, c)
				c.SetWaiting(true)
				tt.during(c)
				c.Stop()
				time.Sleep(time.Hour)
				if c.limit != tt.limit || c.after != tt.after {
					t.Errorf("limit %d after %v, want %d after %v", c.limit, c.after, tt.limit, tt.after)
				}
			})
		})
	}
}
