package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// getWith sends a request with the logins of a store.
func getWith(t *testing.T, at string, store auth.Store, login auth.Login) error {
	t.Helper()
	tr, err := auth.NewTransport(at, &auth.Options{Store: store, Login: login, Server: auth.Server{AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Get(at)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// A login of one replica is one of all. When its token has expired, the replicas refresh it once.
func TestLoginsOfReplicas(t *testing.T) {
	as := authtest.Start(t, nil)
	remote := as.Protect(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	nats := natstest.Start(t, nil).ClientURL()
	all := []*cluster.Cluster{open(t, nats), open(t, nats), open(t, nats)}
	local := auth.NewStore() // of the machine of the first
	approve := auth.LoginFunc(func(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
		page, err := r.Start(ctx, "http://127.0.0.1:13316/callback")
		if err != nil {
			return nil, err
		}
		to, err := as.Approve(ctx, page)
		if err != nil {
			return nil, err
		}
		return to.Query(), nil
	})
	if err := getWith(t, remote.URL, local, approve); err != nil { // dowel login
		t.Fatal(err)
	}
	stores := []auth.Store{all[0].Logins(local), all[1].Logins(nil), all[2].Logins(nil)}
	if err := getWith(t, remote.URL, stores[1], nil); err == nil {
		t.Error("another replica is logged in before the first has used its login")
	}
	for i, s := range stores {
		if err := getWith(t, remote.URL, s, nil); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
	}
	as.Advance(2 * time.Hour)
	var asking sync.WaitGroup
	for _, s := range append(stores, stores...) {
		asking.Go(func() {
			if err := getWith(t, remote.URL, s, nil); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if n := as.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	key := auth.RecordKey(remote.URL, "")
	shared, err := stores[2].Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := local.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if shared == nil || own == nil || own.LoginID != shared.LoginID {
		t.Errorf("the login of the machine is %v, that of the cluster %v", own, shared)
	}
	value, _, err := all[0].Values().Get(t.Context(), replica.KeyOf(cluster.LoginPrefix, key))
	if err != nil || value == nil || strings.Contains(string(value), shared.AccessToken) {
		t.Errorf("the stored login can be read: %s, %v", value, err)
	}
}
