package auth

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// leasedStore is a store that can lose its lock.
type leasedStore struct {
	Store
	held context.Context
	lose context.CancelFunc
}

func newLeasedStore() *leasedStore {
	s := &leasedStore{Store: NewStore()}
	s.held, s.lose = context.WithCancel(context.Background())
	return s
}

func (s *leasedStore) Update(ctx context.Context, key string, change func(*Record) (*Record, error)) error {
	oauth.NoteRecordLock(ctx, s.held)
	return s.Store.Update(ctx, key, change)
}

// A refresh token is not sent after the lock of its record was lost: another process may have used
// it.
func TestLostLockSendsNoToken(t *testing.T) {
	t.Parallel()
	store := newLeasedStore()
	s := newSetup(t, nil, Options{Store: store})
	s.mustPost(s.Transport)
	before := s.record(s.Transport)
	s.as.Advance(2 * time.Hour)
	store.lose()
	if _, err := post(t.Context(), s.Transport, s.rs.URL, "{}"); !errors.Is(err, oauth.ErrLockLost) {
		t.Errorf("the error is %v", err)
	}
	s.wantCounts(map[string]int{"refresh_token": 0})
	if after := s.record(s.Transport); after.RefreshToken != before.RefreshToken || after.LoginID != before.LoginID {
		t.Error("the login has changed")
	}
}

// When a refresh token was sent, its answer counts although the lock is lost meanwhile.
func TestLostLockKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	store := newLeasedStore()
	s := newSetup(t, &authtest.Options{OnRequest: func(endpoint string, _ http.ResponseWriter, _ *http.Request) bool {
		if endpoint == "refresh_token" {
			store.lose()
		}
		return false
	}}, Options{Store: store})
	s.mustPost(s.Transport)
	before := s.record(s.Transport)
	s.as.Advance(2 * time.Hour)
	s.mustPost(s.Transport)
	if after := s.record(s.Transport); after.RefreshToken == before.RefreshToken || after.LoginID != before.LoginID {
		t.Error("the new tokens were not stored")
	}
}
