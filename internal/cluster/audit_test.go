package cluster_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// A line of one replica reaches the others, once and in order, also a line of a time
// without the cluster.
func TestAuditOfReplicas(t *testing.T) {
	start := natstest.Restartable(t)
	nats := start()
	one, two := open(t, nats.ClientURL()), open(t, nats.ClientURL())
	lines := make(chan string, 100)
	join := func(c *cluster.Cluster, use func(string, []byte)) *cluster.AuditLog {
		t.Helper()
		a, err := c.ShareAudit(t.Context(), use)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	from := join(one, func(_ string, line []byte) { t.Errorf("a replica got its own line %s", line) })
	join(two, func(name string, line []byte) { lines <- name + " " + string(line) })
	sender := ""
	expect := func(want string) {
		t.Helper()
		var name, got string
		if _, err := fmt.Sscan(<-lines, &name, &got); err != nil || got != want || sender != "" && name != sender {
			t.Errorf("got %s from %s, want %s", got, name, want)
		}
		sender = name
	}
	for i := range 5 {
		fmt.Fprintln(from, i)
	}
	for i := range 5 {
		expect(fmt.Sprint(i))
	}
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !one.State().Connected })
	fmt.Fprintln(from, "later")
	start()
	expect("later")
}

// A replica that ends sends the lines that wait, in order. Lines without room are counted, however
// few they are.
func TestAuditAtTheEnd(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	const all = 600
	lines := make(chan string, 2*all)
	reader := open(t, nats.ClientURL())
	if _, err := reader.ShareAudit(t.Context(), func(_ string, line []byte) { lines <- string(line) }); err != nil {
		t.Fatal(err)
	}
	log := new(lockedBuffer)
	join := func() (*cluster.Cluster, *cluster.AuditLog) {
		c, err := cluster.Open(t.Context(), cluster.Options{URL: nats.ClientURL(), Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.ShareAudit(t.Context(), func(string, []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		return c, a
	}
	c, a := join()
	for i := range all {
		fmt.Fprintln(a, i)
	}
	c.Close()
	for i := range all {
		select {
		case line := <-lines:
			if strings.TrimSpace(line) != fmt.Sprint(i) {
				t.Fatalf("line %d is %s", i, line)
			}
		case <-time.After(polltest.Limit):
			t.Fatalf("line %d has not arrived: %s", i, log.String())
		}
	}
	if text := log.String(); strings.Contains(text, "lines=") {
		t.Errorf("lines are lost: %s", text)
	}
	c, a = join()
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !c.State().Connected })
	for range 5 {
		if _, err := a.Write(make([]byte, 4<<20)); err != nil {
			t.Error(err)
		}
	}
	c.Close()
	fmt.Fprint(a, "late")
	lost := 0
	for _, found := range regexp.MustCompile(`lines=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		n, _ := strconv.Atoi(found[1])
		lost += n
	}
	if lost != 6 {
		t.Errorf("%d lost lines are counted, want 6: %s", lost, log.String())
	}
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// The lines of one replica keep their order at the others, also those of a time in which JetStream
// came and went.
func TestAuditOrder(t *testing.T) {
	t.Parallel()
	start := natstest.Restartable(t)
	nats := start()
	reader, writer := open(t, nats.ClientURL()), open(t, nats.ClientURL())
	const all = 5000
	lines := make(chan string, all+100)
	if _, err := reader.ShareAudit(t.Context(), func(_ string, line []byte) { lines <- strings.TrimSpace(string(line)) }); err != nil {
		t.Fatal(err)
	}
	a, err := writer.ShareAudit(t.Context(), func(string, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		fmt.Fprintln(a, i)
		if i%1000 == 500 {
			natstest.Stop(nats)
			nats = start()
		}
	}
	for i := range all {
		select {
		case line := <-lines:
			if line != fmt.Sprint(i) {
				t.Fatalf("line %d is %s", i, line)
			}
		case <-time.After(polltest.Limit):
			t.Fatalf("line %d has not arrived", i)
		}
	}
}

// Lines that follow each other closely go out together, so that a busy replica does not send a
// message for each call.
func TestAuditGathersLines(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	a, _ := joinAudit(t, open(t, nats.ClientURL()))
	_, lines := joinAudit(t, open(t, nats.ClientURL()))
	const all = 300
	for i := range all {
		fmt.Fprintln(a, i)
		time.Sleep(time.Millisecond)
	}
	for i := range all {
		expectLine(t, lines, fmt.Sprint(i))
	}
	_, js := natstest.Connect(t, nats)
	stream, err := js.Stream(t.Context(), auditStream().Name)
	if err != nil {
		t.Fatal(err)
	}
	if sent := stream.CachedInfo().State.Msgs; sent == 0 || sent > all/2 {
		t.Errorf("%d lines took %d messages", all, sent)
	}
}
