package quota

import (
	"log/slog"
	"maps"
	"sync"
	"time"
)

// refusalPause is the time between two log records of refusals of one client.
const refusalPause = time.Minute

// refusalLog logs what a quota refuses, once for each client and minute.
type refusalLog struct {
	mu     sync.Mutex
	logger *slog.Logger
	last   map[Client]time.Time // of the records within the last minute, and some older ones
}

// LogRefusals makes a quota log what it refuses and whom it cuts off: the first time within a
// minute for each client.
func LogRefusals(q *Quota, logger *slog.Logger) {
	q.refusals.mu.Lock()
	defer q.refusals.mu.Unlock()
	q.refusals.logger, q.refusals.last = logger, map[Client]time.Time{}
}

// logRefusal logs a refusal, unless err is nil, and returns err. No lock of the quota is held.
func (q *Quota) logRefusal(c Client, err error) error {
	if err == nil {
		return nil
	}
	if logger := q.refusals.begin(c); logger != nil {
		logger.Warn("a client is at a limit; further refusals within a minute are not logged", "client", c.Name, "err", err)
	}
	return err
}

// begin returns the logger if the client's refusal is to be logged, else nil.
func (r *refusalLog) begin(c Client) *slog.Logger {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if last, known := r.last[c]; r.logger == nil || known && now.Sub(last) < refusalPause {
		return nil
	}
	maps.DeleteFunc(r.last, func(_ Client, last time.Time) bool { return now.Sub(last) >= refusalPause })
	r.last[c] = now
	return r.logger
}
