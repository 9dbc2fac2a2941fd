package memstore

import (
	"context"
	"sync"
	"time"
)

// Sessions is a session store in the memory of one process. It keeps records only of
// sessions that other processes have opened. It is bounded: if the end of a session is forgotten,
// its id is accepted again until the session's life is over.
type Sessions struct {
	mu      sync.Mutex
	records map[string]sessionRecord
	sweepAt int // the number of records that triggers dropExpired
}

const (
	fewRecords = 1024
	maxRecords = 100_000 // about 20 MiB
)

type sessionRecord struct {
	data  []byte
	final bool
	until time.Time
}

// NewSessions returns an empty store.
func NewSessions() *Sessions {
	return &Sessions{records: map[string]sessionRecord{}, sweepAt: fewRecords}
}

// Load returns the record of a session, or nil if there is none.
func (m *Sessions) Load(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[key].data, nil
}

// Save stores a record until the given time. No later Save replaces a final one.
func (m *Sessions) Save(_ context.Context, key string, record []byte, final bool, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.records) >= m.sweepAt {
		m.dropExpired(time.Now())
	}
	if !m.records[key].final {
		m.records[key] = sessionRecord{record, final, until}
	}
	return nil
}

// dropExpired forgets expired records. If too many remain, it also forgets a tenth of the sessions
// that have ended. m.mu is held.
func (m *Sessions) dropExpired(now time.Time) {
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
		if r.final {
			delete(m.records, key)
			excess--
		}
	}
	m.sweepAt = min(max(fewRecords, 2*len(m.records)), max(maxRecords, len(m.records)+fewRecords))
}
