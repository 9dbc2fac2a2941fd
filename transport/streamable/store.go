package streamable

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// SessionStore keeps what changes in the life of a legacy session; what a session is stands in its id. Replicas that share a
// store agree on it. Without a shared one, another replica honours the id of a session that has ended here until its life
// is over (Options.SessionLife). It is called concurrently, and with the requests that need it: its errors fail them.
type SessionStore interface {
	// Load returns the record of a session; the zero record for one that has none.
	Load(ctx context.Context, key string) (SessionRecord, error)
	// Save keeps the record until the time given, at least. It must not bring back a session whose record has ended.
	Save(ctx context.Context, key string, r SessionRecord, until time.Time) error
}

// SessionRecord is what changes in the life of a session.
type SessionRecord struct {
	LogLevel      mcp.LoggingLevel `json:"logLevel,omitempty"`      // empty: never set
	Subscriptions []string         `json:"subscriptions,omitempty"` // URIs of resources, in order
	Used          time.Time        `json:"used"`                    // last; to the minute
	Ended         bool             `json:"ended,omitempty"`
}

// memorySessions is the store of one process, of sessions whose ids others have minted. What it keeps of those that have ended
// is bounded: the id of one that is forgotten would be honoured again, until its life is over.
type memorySessions struct {
	mu      sync.Mutex
	records map[string]memoryRecord
	sweepAt int // the number of records at which those that are over are dropped
}

const (
	fewRecords = 1024
	maxRecords = 100_000 // some 20 MiB
)

type memoryRecord struct {
	SessionRecord
	until time.Time
}

func newMemorySessions() *memorySessions {
	return &memorySessions{records: map[string]memoryRecord{}, sweepAt: fewRecords}
}

func (m *memorySessions) Load(_ context.Context, key string) (SessionRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[key].SessionRecord, nil
}

func (m *memorySessions) Save(_ context.Context, key string, r SessionRecord, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.records) >= m.sweepAt {
		m.dropExpired(time.Now())
	}
	if !m.records[key].Ended {
		m.records[key] = memoryRecord{r, until}
	}
	return nil
}

// dropExpired forgets what is over, and where that is not enough a tenth of those that have ended; m.mu is held.
func (m *memorySessions) dropExpired(now time.Time) {
	for key, r := range m.records {
		if r.until.Before(now) {
			delete(m.records, key)
		}
	}
	excess := len(m.records) - maxRecords*9/10
	for key, r := range m.records {
		if excess <= 0 {
			break
		}
		if r.Ended {
			delete(m.records, key)
			excess--
		}
	}
	m.sweepAt = min(max(fewRecords, 2*len(m.records)), max(maxRecords, len(m.records)+fewRecords))
}
