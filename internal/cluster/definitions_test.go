package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// ownLog is a log in memory.
type ownLog struct{ record []byte }

func (l *ownLog) Update(change func([]byte) []byte) error {
	l.record = change(l.record)
	return nil
}

// The replicas have one record of a server's definitions. It begins with the record of a machine,
// and may be larger than a message.
func TestDefinitionsOfReplicas(t *testing.T) {
	nats := natstest.Start(t, nil)
	one, two := open(t, nats.ClientURL()), open(t, nats.ClientURL())
	noted := make(chan string, 10)
	stop, err := two.Values().Watch(cluster.DefinitionPrefix, func(key string) { noted <- key })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	first, second := one.Definitions("", "s", &ownLog{[]byte("a")}), two.Definitions("", "s", nil)
	add := func(text string) func([]byte) []byte {
		return func(record []byte) []byte { return append(record, text...) }
	}
	if err := first.Update(add("b")); err != nil {
		t.Fatal(err)
	}
	<-noted
	if err := second.Update(add(strings.Repeat("c", 4<<20))); err != nil {
		t.Fatal(err)
	}
	var got string
	read := func(record []byte) []byte { got = string(record); return record }
	if err := first.Update(read); err != nil || len(got) != 2+4<<20 || got[:3] != "abc" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := one.Definitions("", "other", nil).Update(read); err != nil || got != "" {
		t.Errorf("another server: %s, %v", got, err)
	}
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !one.State().Connected })
	for _, log := range []client.DefinitionLog{first, one.Definitions("", "s", nil)} { // a reload makes no new log
		if got = "none"; !errors.Is(log.Update(read), replica.ErrUnreachable) || got[:3] != "abc" {
			t.Errorf("without the cluster: %.10s", got)
		}
	}
}
