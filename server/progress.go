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

// progressReports is what a call has reported.
type progressReports struct {
	limit *rate.Limiter
	started bool
	highest  float64     // the highest value, sent or held back
	heldBack  *mcp.Object // the latest report, held back for being too soon
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
	if c.ended {
		return
	}
	p := c.progressState()
	if p.started && done <= p.highest {
		return
	}
	p.started, p.highest = true, done
	report := appendProgress(c.req.ProgressToken, done, total, message)
	if !p.limit.Allow() && (total <= 0 || done < total) {
		p.heldBack = &report
		return
	}
	p.heldBack = nil
	_ = c.sendNotification(mcp.NotificationProgress, report) // a peer that is gone needs none
}

func notFinite(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }

// progressState returns the call's progress, which goes on where an earlier round under the same token was. The call must
// be locked.
func (c *call) progressState() *progressReports {
	if c.progress == nil {
		c.progress = &progressReports{limit: rate.NewLimiter(rate.Every(progressInterval), progressBurst)}
		if c.input != nil && c.input.progressFloor != nil && string(c.input.progressFloor.Token) == string(c.req.ProgressToken) {
			c.progress.started, c.progress.highest = true, c.input.progressFloor.Value
		}
	}
	return c.progress
}

// currentFloor is what a later round under the same token must stay above.
func (c *call) currentFloor() *progressFloor {
	if c.progress != nil && c.progress.started {
		return &progressFloor{c.req.ProgressToken, c.progress.highest}
	}
	if c.input != nil {
		return c.input.progressFloor
	}
	return nil
}

// sendHeldBack sends what was held back. The call must be locked.
func (c *call) sendHeldBack() {
	if p := c.progress; p != nil && p.heldBack != nil {
		_ = c.sendNotification(mcp.NotificationProgress, *p.heldBack) // a peer that is gone needs none
		p.heldBack = nil
	}
	if c.messages != nil {
		c.messages.reportDropped(c)
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
