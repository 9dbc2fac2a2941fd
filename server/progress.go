package server

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// A request may report progress progressBurst times at once, and then once per progressInterval.
const (
	progressBurst    = 10
	progressInterval = 20 * time.Millisecond
)

// progressReports is the progress that a call has reported.
type progressReports struct {
	limit    *rate.Limiter
	started  bool
	highest  float64          // the highest value, sent or held back
	heldBack *json.RawMessage // the latest report, if it came too early to send
}

// Progress reports the progress of the handler's request: done of total; a total of 0 means
// unknown. It does nothing if the client did not ask for progress. A report that does not exceed
// the last one is dropped. A report that comes too soon is held back until a newer one replaces it
// or the handler returns. The last report, with done equal to total, is sent at once.
//
// In a task, the message becomes the status message; without a message, the numbers become it. The
// client sees the latest one when it asks for the task.
func Progress(ctx context.Context, done, total float64, message string) {
	c := callFrom(ctx)
	if c == nil || c.req.ProgressToken == nil && c.task == nil || notFinite(done) || notFinite(total) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.task != nil {
		c.task.noteProgress(done, total, message)
	}
	if c.req.ProgressToken == nil || c.isTask() {
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
	_ = c.sendNotification(mcp.NotificationProgress, report) // the error means that the peer is gone
}

func notFinite(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }

// progressState returns the call's progress. It continues from an earlier round with the same
// token. The caller holds c.mu.
func (c *call) progressState() *progressReports {
	if c.progress == nil {
		c.progress = &progressReports{limit: rate.NewLimiter(rate.Every(progressInterval), progressBurst)}
		if c.input != nil && c.input.progressFloor != nil && string(c.input.progressFloor.Token) == string(c.req.ProgressToken) {
			c.progress.started, c.progress.highest = true, c.input.progressFloor.Value
		}
	}
	return c.progress
}

// currentFloor returns the progress that later rounds with the same token must exceed. The caller
// holds c.mu.
func (c *call) currentFloor() *progressFloor {
	if c.progress != nil && c.progress.started {
		return &progressFloor{c.req.ProgressToken, c.progress.highest}
	}
	if c.input != nil {
		return c.input.progressFloor
	}
	return nil
}

// sendHeldBack sends the notifications that were held back. The caller holds c.mu.
func (c *call) sendHeldBack() {
	if p := c.progress; p != nil && p.heldBack != nil {
		_ = c.sendNotification(mcp.NotificationProgress, *p.heldBack) // the error means that the peer is gone
		p.heldBack = nil
	}
	if c.messages != nil {
		c.messages.reportDropped(c)
	}
}

func appendProgress(token []byte, done, total float64, message string) json.RawMessage {
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
