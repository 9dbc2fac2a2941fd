package streamable

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
)

// sessionRecord is the changeable state of a session. A [SessionStore] keeps it as JSON.
type sessionRecord struct {
	LogLevel      mcp.LoggingLevel `json:"logLevel,omitempty"`      // empty if the client has not set it
	Subscriptions []string         `json:"subscriptions,omitempty"` // resource URIs, sorted
	Used          time.Time        `json:"used"`                    // last use, with the precision of a minute
	Ended         bool             `json:"ended,omitempty"`
}

// sessionUpdater is a [SessionStore] with compare-and-set.
type sessionUpdater interface {
	Update(ctx context.Context, key string, until time.Time, change func(record []byte) (next []byte, final bool, err error)) error
}

// loadRecord returns the record of a session from the store, or the zero record if it has none.
func (s *Server) loadRecord(ctx context.Context, key string) (r sessionRecord, err error) {
	data, err := s.opts.Sessions.Store.Load(ctx, key)
	if err != nil {
		return r, err
	}
	return decodeRecord(data)
}

// decodeRecord returns the record in data, or the zero record without data.
func decodeRecord(data []byte) (r sessionRecord, err error) {
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return sessionRecord{}, fmt.Errorf("the session store returned a malformed record: %w", err)
	}
	return r, nil
}

// changeRecord stores the change of a record in a store of several processes. change reports false
// if there is nothing to store.
func (s *Server) changeRecord(ctx context.Context, key string, until time.Time, change func(*sessionRecord) bool) error {
	if store, ok := s.opts.Sessions.Store.(sessionUpdater); ok {
		return store.Update(ctx, key, until, func(data []byte) (next []byte, final bool, err error) {
			r, err := decodeRecord(data)
			if err != nil || !change(&r) {
				return nil, false, err
			}
			next, err = json.Marshal(r)
			return next, r.Ended, err
		})
	}
	r, err := s.loadRecord(ctx, key)
	if err != nil || r.Ended || !change(&r) {
		return err
	}
	return s.saveRecord(ctx, key, r, until)
}

// saveRecord stores the record of a session. The store may forget it after until.
func (s *Server) saveRecord(ctx context.Context, key string, r sessionRecord, until time.Time) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.opts.Sessions.Store.Save(ctx, key, data, r.Ended, until)
}

// hasPrivateStore reports whether no other process shares the session store.
func (s *Server) hasPrivateStore() bool {
	return s.isInMemory() || s.keepsEnds()
}

func (s *Server) isInMemory() bool {
	_, ok := s.opts.Sessions.Store.(*memstore.Sessions)
	return ok
}

// keepsEnds reports whether the session store is one of this process that outlives it. A later
// process with the same keys reads from it which sessions have ended.
func (s *Server) keepsEnds() bool {
	store, ok := s.opts.Sessions.Store.(interface{ IsPrivate() bool })
	return ok && store.IsPrivate()
}
