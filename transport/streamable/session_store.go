package streamable

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// SessionStore keeps the changeable state of legacy sessions; the fixed state is sealed in the
// session id. Replicas that share a store agree on it. Without a shared store, another replica
// still accepts the id of a session that has ended here, until [SessionOptions.Life] is over. The
// methods are called concurrently. An error fails the request that needs the store.
type SessionStore interface {
	// Load returns the record of a session, or the zero record if it has none.
	Load(ctx context.Context, key string) (SessionRecord, error)
	// Save stores the record and keeps it at least until the given time. If the stored record has
	// ended, Save must not overwrite it.
	Save(ctx context.Context, key string, r SessionRecord, until time.Time) error
}

// SessionRecord is the changeable state of a session.
type SessionRecord struct {
	LogLevel      mcp.LoggingLevel `json:"logLevel,omitempty"`      // empty if the client has not set it
	Subscriptions []string         `json:"subscriptions,omitempty"` // resource URIs, in order
	Used          time.Time        `json:"used"`                    // last use, with the precision of a minute
	Ended         bool             `json:"ended,omitempty"`
}

// memorySessions is a [SessionStore] in the memory of one process. It keeps records only of
// sessions that other processes have opened. It is bounded: if the end of a session is forgotten,
// its id is accepted again until the session's life is over.
type memorySessions struct {
	mu      sync.Mutex
	records map[string]memoryRecord
	sweepAt int // the number of records that triggers dropExpired
}

const (
	fewRecords = 1024
	maxRecords = 100_000 // about 20 MiB
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

// dropExpired forgets expired records. If too many remain, it also forgets a tenth of those that
// have ended. m.mu is held.
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
