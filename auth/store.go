package auth

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Store keeps a [Record] for each key. It is used concurrently.
type Store interface {
	// Load returns the record of a key, or nil without one. The caller may change the result.
	Load(ctx context.Context, key string) (*Record, error)
	// Update replaces the record of a key while it holds the key's lock. change gets the current
	// record, or nil; it may change and return it, and may take as long as a request to an
	// authorization server. A nil result deletes the record. If change returns an error, the
	// record stays and the error is returned unchanged.
	//
	// The lock excludes every process that uses the same storage. A refresh token can be used only
	// once, so the new record must be durable when Update returns. Update increments
	// Record.Generation. If the lock cannot be taken before ctx ends, Update returns an error
	// without calling change.
	Update(ctx context.Context, key string, change func(*Record) (*Record, error)) error
}

// Record is everything that is remembered about a server and an account: the registration of the
// client at the authorization server, and tokens. It contains secrets. Its JSON form is the form in
// which a Store may keep it.
type Record struct {
	Server     string `json:"server"`            // URL of the MCP server
	Account    string `json:"account,omitempty"` // as in Options.Account
	Generation uint64 `json:"generation"`        // counts the updates of the record

	Issuer       string       `json:"issuer"`             // to which everything below belongs
	Resource     string       `json:"resource,omitempty"` // value of the resource parameter; empty if it is omitted
	Registration Registration `json:"registration"`
	// Pending is the registration of a login that has not succeeded yet, with its issuer. It
	// takes the place of Registration with that login: until then, the tokens need their own.
	// nil without one.
	Pending *Record `json:"pending,omitempty"`

	AccessToken  string    `json:"access_token,omitempty"`
	TokenType    string    `json:"token_type,omitempty"`
	LoginID      string    `json:"login_id,omitempty"` // random, with the time of the login; a refresh keeps it
	RefreshToken string    `json:"refresh_token,omitempty"`
	ObtainedAt   time.Time `json:"obtained_at,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"` // of the access token; zero if the server did not say
	Requested    []string  `json:"requested,omitempty"` // scopes
	Granted      []string  `json:"granted,omitempty"`   // scopes
	// DPoPKey is the private key to which the tokens are bound, a JSON Web Key.
	DPoPKey json.RawMessage `json:"dpop_key,omitempty"`

	// Metadata is the metadata document of the authorization server, read at MetadataTime.
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	MetadataTime time.Time       `json:"metadata_time,omitzero"`
}

// Registration is a client's registration at one authorization server.
type Registration struct {
	ClientID     string    `json:"client_id,omitempty"`
	ClientSecret string    `json:"client_secret,omitempty"`
	AuthMethod   string    `json:"auth_method,omitempty"`   // at the token endpoint
	RedirectURIs []string  `json:"redirect_uris,omitempty"` // which the server accepts
	Dynamic      bool      `json:"dynamic,omitempty"`       // made by dynamic registration, so it may be made again
	Expires      time.Time `json:"expires,omitzero"`        // of the secret; zero if it does not expire
	// ManagementURI and ManagementToken delete the registration (RFC 7592). Both may be empty.
	ManagementURI   string `json:"management_uri,omitempty"`
	ManagementToken string `json:"management_token,omitempty"`
}

// RecordKey returns the key under which the record of a server and an account is stored. server is
// the URL as in [Record.Server], with http or https also for a WebSocket.
func RecordKey(server, account string) string {
	if account == "" {
		return server
	}
	return server + "#" + account
}

// memoryStore is a [Store] in memory.
type memoryStore struct {
	mu      sync.Mutex
	entries map[string]*memoryEntry
}

type memoryEntry struct {
	lock   chan struct{} // holds one element while it is locked
	record *Record       // guarded by memoryStore.mu
}

// NewStore returns an empty Store in memory. Transports that share it share their logins.
func NewStore() Store { return &memoryStore{entries: map[string]*memoryEntry{}} }

func (s *memoryStore) entry(key string) *memoryEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		e = &memoryEntry{lock: make(chan struct{}, 1)}
		s.entries[key] = e
	}
	return e
}

// Load implements [Store].
func (s *memoryStore) Load(_ context.Context, key string) (*Record, error) {
	e := s.entry(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.record.clone(), nil
}

// Update implements [Store].
func (s *memoryStore) Update(ctx context.Context, key string, change func(*Record) (*Record, error)) error {
	e := s.entry(key)
	select {
	case e.lock <- struct{}{}:
		defer func() { <-e.lock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	current := e.record.clone()
	s.mu.Unlock()
	var generation uint64
	if current != nil {
		generation = current.Generation
	}
	next, err := change(current)
	if err != nil {
		return err
	}
	if next = next.clone(); next != nil {
		next.Generation = generation + 1
	}
	s.mu.Lock()
	e.record = next
	s.mu.Unlock()
	return nil
}

// clone returns a copy. Its slices and Pending are shared, because they are replaced and never
// changed.
func (r *Record) clone() *Record {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}
