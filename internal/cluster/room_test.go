package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// A cluster fits into a NATS server with little room, and doctor warns. When a stream is full, the
// error says so.
func TestSmallServer(t *testing.T) {
	t.Parallel()
	c := open(t, natstest.Start(t, func(o *server.Options) { o.JetStreamMaxStore = 20 << 20 }).ClientURL())
	if err := c.Tasks().Prepare(); err != nil {
		t.Error(err)
	}
	if _, err := c.ShareAudit(t.Context(), func(string, []byte) {}); err != nil {
		t.Error(err)
	}
	if _, err := c.Append(t.Context(), "s", []byte("x")); err != nil {
		t.Error(err)
	}
	if warnings := strings.Join((&control.Cluster{State: c.State()}).Warnings(replica.SyncAlways), " "); !strings.Contains(warnings, "little room") {
		t.Errorf("the warnings are %s", warnings)
	}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = c.Values().Put(t.Context(), replica.KeyOf("test", string(rune('a'+i))), make([]byte, 500<<10), 0, 0)
	}
	if err == nil || errors.Is(err, replica.ErrUnreachable) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a full stream: %v", err)
	}
	if c := open(t, natstest.Start(t, nil).ClientURL()); c.State().IsSmall {
		t.Error("a server without limits counts as small")
	}
}

// While JetStream is disabled, as after an error of the disk, every operation fails at once and
// says so. It continues when JetStream is there again.
func TestJetStreamDisabled(t *testing.T) {
	t.Parallel()
	start := natstest.Restartable(t)
	nats := start()
	one, two := open(t, nats.ClientURL()), open(t, nats.ClientURL())
	until := time.Now().Add(time.Hour)
	if err := one.Save(t.Context(), "k", []byte("1"), false, until); err != nil {
		t.Fatal(err)
	}
	// (*server.Server).DisableJetStream and EnableJetStream race with requests, so the server is
	// started again without JetStream, and then with it.
	natstest.Stop(nats)
	nats = start(func(o *server.Options) { o.JetStream = false })
	polltest.Until(t, "the status names JetStream and the server", func() bool {
		if err := one.Save(t.Context(), "k", []byte("2"), false, until); !errors.Is(err, replica.ErrUnreachable) {
			t.Errorf("a session: %v", err)
		}
		shown := &control.Cluster{State: one.State()}
		text := shown.Summary() + strings.Join(shown.Warnings(replica.SyncAlways), " ")
		return !shown.Connected && strings.Contains(text, "JetStream") && shown.Server != ""
	})
	if _, err := one.Append(t.Context(), "s", nil); !errors.Is(err, replica.ErrUnreachable) {
		t.Errorf("an event: %v", err)
	}
	if err := one.Tasks().Prepare(); err == nil {
		t.Error("tasks are kept")
	}
	natstest.Stop(nats)
	start()
	polltest.Until(t, "a session is kept", func() bool { return one.Save(t.Context(), "k", []byte("3"), false, until) == nil })
	polltest.Until(t, "the other process is connected again", func() bool { return two.State().Connected })
	if record, err := two.Load(t.Context(), "k"); string(record) != "3" || err != nil {
		t.Errorf("%s, %v", record, err)
	}
	if _, err := one.Append(t.Context(), "s", nil); err != nil {
		t.Error(err)
	}
	if err := one.Tasks().Prepare(); err != nil {
		t.Error(err)
	}
	if err := one.RotateKeys(t.Context()); err != nil {
		t.Error(err)
	}
	polltest.Until(t, "the status has no problem", func() bool { return one.State().Connected && one.State().Problem == "" })
	polltest.Until(t, "the keys are exchanged", func() bool {
		return strings.HasSuffix(one.State().Keys, "older accepted") && one.State().Keys == two.State().Keys
	})
}

// A process that has ended before it could remove the stream that measures the room leaves no
// stream behind.
func TestProbeIsRemoved(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, func(o *server.Options) { o.JetStreamMaxStore = 600 << 20 })
	_, js := natstest.Connect(t, nats)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DOWEL_dowel_probe", Subjects: []string{"dowel.dowel.probe"}, MaxBytes: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	c := open(t, nats.ClientURL())
	if _, err := js.Stream(t.Context(), "DOWEL_dowel_probe"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream is there: %v", err)
	}
	if err := c.Tasks().Prepare(); err != nil {
		t.Error(err)
	}
	if _, err := c.ShareAudit(t.Context(), func(string, []byte) {}); err != nil {
		t.Error(err)
	}
}
