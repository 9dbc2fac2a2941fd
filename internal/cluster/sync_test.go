package cluster_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats-server/v2/server"
	natsclient "github.com/nats-io/nats.go"
)

// visibleSettings lets the account of the user dowel ask for the settings of JetStream.
const visibleSettings = `
system_account: SYS
accounts {
  SYS { users: [{user: sys, password: right}], exports: [{service: "$SYS.REQ.SERVER.PING.JSZ", response: stream}] }
  DOWEL { jetstream: enabled, users: [{user: dowel, password: right}], imports: [{service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ"}}] }
}
`

// startConfigured starts a NATS server with a configuration, and returns its URLs for two users.
func startConfigured(t *testing.T, config string) (dowel, system string) {
	t.Helper()
	nats := natstest.Start(t, func(o *server.Options) {
		if err := o.ProcessConfigString(config); err != nil {
			t.Fatal(err)
		}
	})
	return "nats://dowel:right@" + nats.Addr().String(), "nats://sys:right@" + nats.Addr().String()
}

// A replica learns how NATS writes to the disk only if its account may ask. A refusal
// is not logged.
func TestSync(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, config string
		want         replica.Sync
	}{
		{"no system account", `accounts { DOWEL { jetstream: enabled, users: [{user: dowel, password: right}] } }`, replica.SyncUnknown},
		{"not allowed", `accounts { DOWEL { jetstream: enabled, users: [{user: dowel, password: right, permissions: {publish: {deny: "$SYS.>"}}}] } }`, replica.SyncUnknown},
		{"lazy", visibleSettings, replica.SyncLazy},
		{"an interval", visibleSettings + `jetstream { sync_interval: 1s }`, replica.SyncLazy},
		{"always", visibleSettings + `jetstream { sync_interval: always }`, replica.SyncAlways},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, _ := startConfigured(t, c.config)
			var log bytes.Buffer
			one, err := cluster.Open(t.Context(), cluster.Options{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			got := one.Sync(t.Context())
			if c.want != replica.SyncUnknown { // a server that is busy may answer too late
				polltest.Until(t, "NATS answers", func() bool {
					got = one.Sync(t.Context())
					return got != replica.SyncUnknown
				})
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			one.Close()
			if bytes.Contains(log.Bytes(), []byte("reports a problem")) {
				t.Errorf("the log has %s", &log)
			}
		})
	}
}

// One NATS server that syncs lazily is enough for a warning, whichever answers first.
func TestSyncOfSeveralServers(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{true, false} {
		url, system := startConfigured(t, visibleSettings+`jetstream { sync_interval: always }`)
		one := open(t, url)
		conn, err := natsclient.Connect(system)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = conn.Subscribe("$SYS.REQ.SERVER.PING.JSZ", func(m *natsclient.Msg) {
			_ = m.Respond(fmt.Appendf(nil, `{"data": {"config": {"sync_always": %v}}}`, other))
		})
		if err == nil {
			err = conn.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]replica.Sync{true: replica.SyncAlways, false: replica.SyncLazy}[other]
		polltest.Until(t, "all servers are heard", func() bool { return one.Sync(t.Context()) == want })
	}
}
