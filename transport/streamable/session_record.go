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

// loadRecord returns the record of a session from the store, or the zero record if it has none.
func (s *Server) loadRecord(ctx context.Context, key string) (r sessionRecord, err error) {
	data, err := s.opts.Sessions.Store.Load(ctx, key)
	if err != nil || len(data) == 0 {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return sessionRecord{}, fmt.Errorf("the session store returned a malformed record: %w", err)
	}
	return r, nil
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
	_, private := s.opts.Sessions.Store.(*memstore.Sessions)
	return private
}
