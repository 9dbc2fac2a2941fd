package cluster_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats-server/v2/server"
)

// When the disk of the NATS server is full, operations fail with the reason, and the state shows
// it. When the server runs again with room, everything that was acknowledged is there, without a
// restart of the replica.
func TestFullDiskOfCluster(t *testing.T) {
	folder := natstest.SmallDisk(t, 64<<20)
	port := -1
	start := func() *server.Server {
		return natstest.Start(t, func(o *server.Options) {
			o.StoreDir, o.Port, o.JetStreamMaxStore = filepath.Join(folder, "js"), port, 4<<30
		})
	}
	nats := start()
	c := open(t, nats.ClientURL())
	if _, err := fmt.Sscanf(nats.ClientURL(), "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour)
	stored := 0
	save := func() error {
		err := c.Save(t.Context(), fmt.Sprint("k", stored), fmt.Appendf(nil, "%01000d", stored), false, until)
		if err == nil {
			stored++
		}
		return err
	}
	for range 20 {
		if err := save(); err != nil {
			t.Fatal(err)
		}
	}
	free := natstest.FillDisk(t, folder)
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = save()
	}
	if !errors.Is(err, replica.ErrUnreachable) && err == nil {
		t.Fatal("a full disk takes everything")
	}
	t.Logf("after %d records: %v", stored, err)
	polltest.Until(t, "the state shows it", func() bool { return !c.State().Connected && c.State().Problem != "" })
	free()
	natstest.Stop(nats)
	start()
	polltest.Until(t, "a record is stored", func() bool { return save() == nil })
	for i := range stored {
		if record, err := c.Load(t.Context(), fmt.Sprint("k", i)); err != nil || string(record) != fmt.Sprintf("%01000d", i) {
			t.Errorf("record %d of %d: %q, %v", i, stored, record, err)
		}
	}
	polltest.Until(t, "the state has no problem", func() bool { return c.State().Connected })
}
