package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
)

const loginKey = "https://mcp.example.com"

// makeLogin returns a record as a login makes it.
func makeLogin(token string) *auth.Record {
	time.Sleep(2 * time.Millisecond) // the times of logins differ
	return &auth.Record{Server: loginKey, AccessToken: token, RefreshToken: "refresh " + token, LoginID: oauth.NewLoginID(), ObtainedAt: time.Now()}
}

// refresh returns the record with other tokens.
func refresh(r *auth.Record, token string) *auth.Record {
	c := *r
	c.AccessToken, c.RefreshToken, c.ObtainedAt = token, "refresh "+token, time.Now()
	return &c
}

// setRecord stores a record.
func setRecord(t *testing.T, s auth.Store, r *auth.Record) {
	t.Helper()
	if err := s.Update(t.Context(), loginKey, func(*auth.Record) (*auth.Record, error) { return r, nil }); err != nil {
		t.Fatal(err)
	}
}

// tokenIn returns the access token in a store, or "".
func tokenIn(t *testing.T, s auth.Store) string {
	t.Helper()
	r, err := s.Load(t.Context(), loginKey)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		return ""
	}
	return r.AccessToken
}

// A login that has ended does not come back from the copy of another machine, nor does an older
// one. A later login does.
func TestEndedLoginStaysEnded(t *testing.T) {
	for name, end := range map[string]func(*auth.Record) *auth.Record{
		"logged out": func(*auth.Record) *auth.Record { return nil },
		"refused": func(r *auth.Record) *auth.Record {
			return &auth.Record{Server: r.Server, Issuer: "https://as.example.com"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := openTwo(t)
			copied, older := auth.NewStore(), auth.NewStore()
			setRecord(t, older, makeLogin("older"))
			login := makeLogin("first")
			setRecord(t, copied, login)
			store := one.Logins(nil)
			setRecord(t, store, refresh(login, "refreshed"))
			if err := store.Update(t.Context(), loginKey, func(r *auth.Record) (*auth.Record, error) { return end(r), nil }); err != nil {
				t.Fatal(err)
			}
			for name, local := range map[string]auth.Store{"its copy": copied, "an older login": older} {
				if token := tokenIn(t, two.Logins(local)); token != "" {
					t.Errorf("%s is back: %q", name, token)
				}
				if token := tokenIn(t, store); token != "" {
					t.Errorf("%s is in the cluster: %q", name, token)
				}
			}
			setRecord(t, older, makeLogin("again"))
			if token := tokenIn(t, two.Logins(older)); token != "again" {
				t.Errorf("after another login: %q", token)
			}
			if token := tokenIn(t, two.Logins(copied)); token != "again" {
				t.Errorf("with the old copy: %q", token)
			}
		})
	}
}

// The last login counts, and not the last refresh. Of one login, the last refresh counts.
func TestNewestLogin(t *testing.T) {
	one, two := openTwo(t)
	login := makeLogin("first")
	store := one.Logins(nil)
	setRecord(t, store, login)
	local := auth.NewStore()
	setRecord(t, local, makeLogin("second"))
	setRecord(t, store, refresh(login, "first, refreshed"))
	if token := tokenIn(t, two.Logins(local)); token != "second" {
		t.Errorf("the login is %q, want the second", token)
	}
	second, err := store.Load(t.Context(), loginKey)
	if err != nil {
		t.Fatal(err)
	}
	setRecord(t, local, refresh(second, "second, refreshed"))
	if token := tokenIn(t, two.Logins(local)); token != "second, refreshed" {
		t.Errorf("the token is %q, want the refreshed one", token)
	}
	back := refresh(second, "by a clock that is slow")
	back.ObtainedAt = second.ObtainedAt.Add(-time.Hour)
	setRecord(t, store, back)
	if token := tokenIn(t, two.Logins(local)); token != back.AccessToken {
		t.Errorf("the token is %q: a used one is back", token)
	}
}

// Refreshed tokens are kept although the request has ended, and although another replica has sealed
// the record again.
func TestRefreshedTokensAreKept(t *testing.T) {
	one, two := openTwo(t)
	store := one.Logins(nil)
	setRecord(t, store, makeLogin("first"))
	ctx, cancel := context.WithCancel(t.Context())
	err := store.Update(ctx, loginKey, func(r *auth.Record) (*auth.Record, error) {
		cancel()
		return refresh(r, "second"), nil
	})
	if token := tokenIn(t, two.Logins(nil)); err != nil || token != "second" {
		t.Errorf("after the end of the request: %q, %v", token, err)
	}
	key := replica.KeyOf(cluster.LoginPrefix, loginKey)
	err = store.Update(t.Context(), loginKey, func(r *auth.Record) (*auth.Record, error) {
		value, version, err := two.Values().Get(t.Context(), key)
		if err == nil {
			_, err = two.Values().Put(t.Context(), key, value, version, 0)
		}
		return refresh(r, "third"), err
	})
	if token := tokenIn(t, two.Logins(nil)); err != nil || token != "third" {
		t.Errorf("after the record was stored again: %q, %v", token, err)
	}
}

// A change that another replica has overtaken changes nothing, not even the copy of the machine.
func TestOvertakenChange(t *testing.T) {
	one, two := openTwo(t)
	local := auth.NewStore()
	setRecord(t, local, makeLogin("first"))
	store := one.Logins(local)
	key := replica.KeyOf(cluster.LoginPrefix, loginKey)
	if token := tokenIn(t, store); token != "first" {
		t.Fatalf("the login is %q", token)
	}
	setRecord(t, store, makeLogin("other"))
	other, _, err := one.Values().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	setRecord(t, store, makeLogin("second"))
	err = store.Update(t.Context(), loginKey, func(r *auth.Record) (*auth.Record, error) {
		_, version, err := two.Values().Get(t.Context(), key)
		if err == nil {
			_, err = two.Values().Put(t.Context(), key, other, version, 0)
		}
		return refresh(r, "second, refreshed"), err
	})
	if err == nil {
		t.Error("no error")
	}
	if token := tokenIn(t, local); token != "second" {
		t.Errorf("the machine has %q", token)
	}
}

// takingStore takes a lease from its holder while a login is read.
type takingStore struct {
	auth.Store
	take func(ctx context.Context)
}

func (s *takingStore) Load(ctx context.Context, key string) (*auth.Record, error) {
	s.take(ctx)
	return s.Store.Load(ctx, key)
}

// takeLease takes a lease from its holder, as if that had been cut off, and waits until the change
// with ctx knows it.
func takeLease(ctx context.Context, t *testing.T, v replica.Values) {
	t.Helper()
	key := replica.KeyOf("login-lease", loginKey)
	for isTaken := false; !isTaken; { // the holder renews it meanwhile
		_, version, err := v.Get(t.Context(), key)
		if err == nil {
			_, err = v.Put(t.Context(), key, []byte("two x"), version, replica.LeaseLife)
		}
		if isTaken = err == nil; !isTaken && !errors.Is(err, replica.ErrStale) {
			t.Fatal(err)
		}
	}
	polltest.Until(t, "the lease is lost", func() bool {
		locked, cancel := oauth.WhileLocked(ctx)
		defer cancel()
		return errors.Is(context.Cause(locked), oauth.ErrLockLost)
	})
}

// A login is not changed by a replica that has lost its lease.
func TestChangeWithoutLease(t *testing.T) {
	one, two := openTwo(t)
	ctx := oauth.WithRecordLock(t.Context())
	store := one.Logins(&takingStore{auth.NewStore(), func(ctx context.Context) { takeLease(ctx, t, two.Values()) }})
	err := store.Update(ctx, loginKey, func(*auth.Record) (*auth.Record, error) {
		t.Error("the change was called")
		return nil, nil
	})
	if !errors.Is(err, oauth.ErrLockLost) {
		t.Errorf("the error is %v", err)
	}
}
