package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats-server/v2/server"
	natsclient "github.com/nats-io/nats.go"
)

// An error says what is wrong with the cluster and what to do, without the password.
func TestOpenErrors(t *testing.T) {
	plain := natstest.Start(t, func(o *server.Options) { o.JetStream = false })
	secured := natstest.Start(t, func(o *server.Options) { o.Username, o.Password = "dowel", "right" })
	gone := natstest.Start(t, nil)
	natstest.Stop(gone)
	for _, c := range []struct{ name, url, want string }{
		{"not NATS", "http://127.0.0.1:80", "want nats://HOST:PORT/NAME"},
		{"bad name", plain.ClientURL() + "/a.b", "want up to 40 letters"},
		{"no JetStream", plain.ClientURL(), "start it with -js"},
		{"no password", secured.ClientURL(), "check the user and the password"},
		{"wrong password", strings.Replace(secured.ClientURL(), "//", "//dowel:wrong-one@", 1), "check the user and the password"},
		{"unreachable", gone.ClientURL(), "start a NATS server there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, err := cluster.Open(t.Context(), cluster.Options{URL: c.url})
			if err == nil {
				cl.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "wrong-one") {
				t.Errorf("%v, want %q and no password", err, c.want)
			}
		})
	}
}

// A replica that starts while JetStream has no leader, and so gets no answer to a request, sends it
// again.
func TestOpenWithoutLeader(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	open(t, nats.ClientURL()).Close() // makes the streams
	conn, _ := natstest.Connect(t, nats)
	account := nats.GlobalAccount()
	var mu sync.Mutex
	lost := map[string]bool{}
	for i, api := range []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.KV_dowel_dowel", "$JS.API.STREAM.MSG.GET.KV_dowel_dowel", "$JS.API.STREAM.INFO.DOWEL_dowel_values"} {
		silent := fmt.Sprint("silent.", i)
		_, err := conn.Subscribe(silent, func(*natsclient.Msg) { // and never answers
			mu.Lock()
			defer mu.Unlock()
			lost[api] = account.RemoveMapping(api)
		})
		if err == nil {
			err = account.AddMapping(api, silent)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	open(t, nats.ClientURL())
	mu.Lock()
	defer mu.Unlock()
	if len(lost) != 4 {
		t.Errorf("of 4 requests only these were lost: %v", lost)
	}
}

// Without the NATS server every operation fails at once; with it again, all continues.
func TestConnectionLost(t *testing.T) {
	start := natstest.Restartable(t)
	nats := start()
	c := open(t, nats.ClientURL())
	if err := c.Save(t.Context(), "k", []byte("1"), false, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !c.State().Connected })
	began := time.Now()
	_, loaded := c.Load(t.Context(), "k")
	_, appended := c.Append(t.Context(), "s", nil)
	_, sent := c.Send(t.Context(), "x", nil)
	for name, err := range map[string]error{"Load": loaded, "Append": appended, "Send": sent, "SendAll": c.SendAll(nil), "RotateKeys": c.RotateKeys(t.Context()),
		"Save": c.Save(t.Context(), "k", nil, true, time.Now().Add(time.Hour))} {
		if !errors.Is(err, replica.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the errors took %v", took)
	}
	if s := c.State(); s.Problem == "" {
		t.Errorf("the state names no problem: %+v", s)
	}
	start()
	polltest.Until(t, "the connection is back", func() bool {
		record, err := c.Load(t.Context(), "k")
		return err == nil && string(record) == "1"
	})
}
