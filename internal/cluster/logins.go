package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
)

// LoginPrefix begins the keys of logins among the values.
const LoginPrefix = "login"

// storedLogins is an [auth.Store] for all replicas. A lease excludes the other replicas from a
// change, so a refresh token is used once. A login that was made at this machine takes the place of
// an older one in the cluster.
type storedLogins struct {
	cluster *Cluster
	sealer  *mcp.Sealer
	local   auth.Store // of this machine, where dowel login stores; nil without one
}

// storedLogin is the value of a login.
type storedLogin struct {
	Sealed  string        `json:"sealed,omitempty"` // the record, bound to its key; empty without one
	Since   time.Time     `json:"since"`            // when it was sealed
	Dropped *droppedLogin `json:"dropped,omitempty"`
}

// droppedLogin is the last login that was ended: by a logout, or because its tokens were refused. A
// machine may still have a copy of it, or of an older one.
type droppedLogin struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// sharedLogin is the content of the cluster for one login.
type sharedLogin struct {
	record  *auth.Record // nil without one
	dropped *droppedLogin
	version uint64
	isFresh bool // the record need not be sealed again yet
}

// Logins returns the logins of all replicas. local has the logins that were made at this machine;
// it may be nil.
func (c *Cluster) Logins(local auth.Store) auth.Store {
	return &storedLogins{c, c.keys.For("login"), local}
}

// Load implements [auth.Store].
func (s *storedLogins) Load(ctx context.Context, key string) (*auth.Record, error) {
	shared, r, err := s.newest(ctx, key)
	if err == nil && r != nil && (r != shared.record || !shared.isFresh) {
		_, err = s.put(ctx, key, r, shared.dropped, shared.version)
		if errors.Is(err, replica.ErrStale) { // another replica has stored a newer one
			_, r, err = s.newest(ctx, key)
		}
	}
	return r, err
}

// newest returns what the cluster has, and the newest record: the record of the cluster, or one
// that was made at this machine and is not in the cluster yet.
func (s *storedLogins) newest(ctx context.Context, key string) (shared *sharedLogin, r *auth.Record, err error) {
	if shared, err = s.read(ctx, key); err != nil {
		return nil, nil, fmt.Errorf("the logins of the cluster cannot be read: %w", err)
	}
	own, err := s.loadLocal(ctx, key)
	if err != nil && shared.record == nil {
		return nil, nil, err
	}
	if shared.isOlder(own) {
		return shared, own, nil
	}
	return shared, shared.record, nil
}

// read returns the content of the cluster for one login.
func (s *storedLogins) read(ctx context.Context, key string) (*sharedLogin, error) {
	value, version, err := s.cluster.values.Get(ctx, replica.KeyOf(LoginPrefix, key))
	if err != nil {
		return nil, err
	}
	shared := &sharedLogin{version: version}
	if value == nil {
		return shared, nil
	}
	var stored storedLogin
	if err = json.Unmarshal(value, &stored); err == nil && stored.Sealed != "" {
		var plain []byte
		if plain, err = s.sealer.Open(stored.Sealed, []byte(key)); err == nil {
			err = json.Unmarshal(plain, &shared.record)
		}
	}
	if err != nil {
		s.cluster.opts.Logger.Warn("a login in the cluster cannot be read: log in again", "cluster", s.cluster.name, "err", err)
		shared.record = nil
	}
	shared.dropped, shared.isFresh = stored.Dropped, time.Since(stored.Since) < s.cluster.opts.KeyLife/2
	return shared, nil
}

func (s *storedLogins) loadLocal(ctx context.Context, key string) (*auth.Record, error) {
	if s.local == nil {
		return nil, nil
	}
	return s.local.Load(ctx, key)
}

// isOlder reports whether own is a login that was made after the shared one, or the shared one with
// newer tokens. A machine may have an old copy of a login. Its refresh token was used since, or is
// revoked: it must not come back.
func (l *sharedLogin) isOlder(own *auth.Record) bool {
	switch {
	case own == nil:
		return false
	case !hasTokens(own):
		return l.record == nil && l.dropped == nil
	case l.dropped != nil && (own.LoginID == l.dropped.ID || !loginTime(own).After(l.dropped.At)):
		return false
	case !hasTokens(l.record):
		return true
	case own.LoginID == l.record.LoginID:
		return own.ObtainedAt.After(l.record.ObtainedAt)
	}
	return loginTime(own).After(loginTime(l.record))
}

func hasTokens(r *auth.Record) bool { return r != nil && (r.AccessToken != "" || r.RefreshToken != "") }

// loginTime returns when a login was made. Logins of older versions have only the time of their
// last refresh.
func loginTime(r *auth.Record) time.Time {
	if made, ok := oauth.LoginTime(r.LoginID); ok {
		return made
	}
	return r.ObtainedAt
}

// put stores a record, which may be nil, in the cluster.
func (s *storedLogins) put(ctx context.Context, key string, r *auth.Record, dropped *droppedLogin, version uint64) (uint64, error) {
	stored := storedLogin{Since: time.Now().UTC(), Dropped: dropped}
	if r != nil {
		plain, err := json.Marshal(r)
		if err != nil {
			return 0, err
		}
		stored.Sealed = s.sealer.Seal(plain, []byte(key))
	}
	var value []byte
	if r != nil || dropped != nil {
		var err error
		if value, err = json.Marshal(stored); err != nil {
			return 0, err
		}
	}
	return s.cluster.values.Put(ctx, replica.KeyOf(LoginPrefix, key), value, version, 0)
}
