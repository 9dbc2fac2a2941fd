package server

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// How often one request reports progress: this many at once, and then one per interval.
const (
	progressBurst    = 10
	progressInterval = 20 * time.Millisecond
)

// progress is what a call has reported.
type progress struct {
	limit *rate.Limiter
	begun bool
	last  float64     // the highest value, sent or held back
	held  *mcp.Object // the latest report, held back for being too soon
}

// Progress reports how far the handler's request has come: done of total, which is 0 where it is unknown. It does nothing
// where nobody listens. A report that is not above the one before it is dropped. A report that comes too soon after others is
// held back, until the next one replaces it or the handler returns; the last, with done at total, never is.
func Progress(ctx context.Context, done, total float64, message string) {
	c := callFrom(ctx)
	if c == nil || c.req.ProgressToken == nil || notFinite(done) || notFinite(total) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	p := c.reporting()
	if p.begun && done <= p.last {
		return
	}
	p.begun, p.last = true, done
	report := appendProgress(c.req.ProgressToken, done, total, message)
	if !p.limit.Allow() && (total <= 0 || done < total) {
		p.held = &report
		return
	}
	p.held = nil
	_ = c.notify(mcp.NotificationProgress, report) // a peer that is gone needs none
}

func notFinite(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }

// reporting returns the call's progress, which goes on where an earlier round under the same token was. The call must
// be locked.
func (c *call) reporting() *progress {
	if c.progress == nil {
		c.progress = &progress{limit: rate.NewLimiter(rate.Every(progressInterval), progressBurst)}
		if c.asks != nil && c.asks.floor != nil && string(c.asks.floor.Token) == string(c.req.ProgressToken) {
			c.progress.begun, c.progress.last = true, c.asks.floor.Value
		}
	}
	return c.progress
}

// progressFloor is what a later round under the same token must stay above.
func (c *call) progressFloor() *floor {
	if c.progress != nil && c.progress.begun {
		return &floor{c.req.ProgressToken, c.progress.last}
	}
	if c.asks != nil {
		return c.asks.floor
	}
	return nil
}

// flush sends what was held back. The call must be locked.
func (c *call) flush() {
	if p := c.progress; p != nil && p.held != nil {
		_ = c.notify(mcp.NotificationProgress, *p.held) // a peer that is gone needs none
		p.held = nil
	}
	if c.messages != nil {
		c.messages.flush(c)
	}
}

func appendProgress(token []byte, done, total float64, message string) mcp.Object {
	raw := make([]byte, 0, 64+len(token)+len(message))
	raw = append(append(raw, `{"progressToken":`...), token...)
	raw = appendNumber(append(raw, `,"progress":`...), done)
	if total != 0 {
		raw = appendNumber(append(raw, `,"total":`...), total)
	}
	if message != "" {
		raw = rawjson.AppendString(append(raw, `,"message":`...), message)
	}
	return append(raw, '}')
}

func appendNumber(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
