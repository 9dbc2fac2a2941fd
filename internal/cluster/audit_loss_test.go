package cluster_test

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// auditStream is the stream of the audit log as an administrator may have made it.
func auditStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: "DOWEL_dowel_audit", Subjects: []string{"dowel.dowel.audit"}}
}

// openLogged joins a cluster until the test ends, and returns its log.
func openLogged(t *testing.T, url string) (*cluster.Cluster, *lockedBuffer) {
	t.Helper()
	log := new(lockedBuffer)
	c, err := cluster.Open(t.Context(), cluster.Options{URL: url, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, log
}

// joinAudit joins the audit log, and returns the lines of other replicas.
func joinAudit(t *testing.T, c *cluster.Cluster) (*cluster.AuditLog, <-chan string) {
	t.Helper()
	lines := make(chan string, 2000)
	a, err := c.ShareAudit(t.Context(), func(_ string, line []byte) { lines <- strings.TrimSpace(string(line)) })
	if err != nil {
		t.Fatal(err)
	}
	return a, lines
}

// expectLine checks the next line of another replica.
func expectLine(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	select {
	case got := <-lines:
		if got != want {
			t.Fatalf("the next line is %.100s, want %s", got, want)
		}
	case <-time.After(polltest.Limit):
		t.Fatalf("the line %s has not come", want)
	}
}

// While the stream has no room, lines wait. The replica says so once, and no line is lost.
func TestAuditWaitsForRoom(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	_, js := natstest.Connect(t, nats)
	small := auditStream()
	small.Discard, small.MaxMsgs = jetstream.DiscardNew, 1
	if _, err := js.CreateStream(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	writer, log := openLogged(t, nats.ClientURL())
	a, _ := joinAudit(t, writer)
	_, lines := joinAudit(t, open(t, nats.ClientURL()))
	const all = 600
	for i := range all {
		fmt.Fprintln(a, i)
	}
	const refused = "does not take them"
	polltest.Until(t, "the replica says that lines wait", func() bool { return strings.Contains(log.String(), refused) })
	small.MaxMsgs = 1000
	if _, err := js.UpdateStream(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		expectLine(t, lines, fmt.Sprint(i))
	}
	if text := log.String(); strings.Count(text, refused) != 1 || strings.Contains(text, "miss lines") {
		t.Errorf("the log is %s", text)
	}
}

// A message that is stored twice, because the stream has forgotten its id, is read once.
func TestAuditIsReadOnce(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, nil)
	a, _ := joinAudit(t, open(t, server.ClientURL()))
	_, lines := joinAudit(t, open(t, server.ClientURL()))
	fmt.Fprintln(a, "first")
	expectLine(t, lines, "first")
	_, js := natstest.Connect(t, server)
	stream, err := js.Stream(t.Context(), auditStream().Name)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := stream.GetLastMsgForSubject(t.Context(), auditStream().Subjects[0])
	if err != nil {
		t.Fatal(err)
	}
	again := &nats.Msg{Subject: stored.Subject, Header: stored.Header, Data: stored.Data}
	again.Header.Del(jetstream.MsgIDHeader)
	if _, err := js.PublishMsg(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(a, "second")
	expectLine(t, lines, "second")
}

// A replica that loses the connection before it has read anything gets the lines of that time
// later.
func TestAuditOfOutageBeforeFirstLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	start := func(port int) *server.Server {
		return natstest.Start(t, func(o *server.Options) { o.StoreDir, o.Port = folder, port })
	}
	first := start(-1)
	port := first.Addr().(*net.TCPAddr).Port
	reader := open(t, first.ClientURL())
	_, lines := joinAudit(t, reader)
	natstest.Stop(first)
	elsewhere := start(-1)
	writer := open(t, elsewhere.ClientURL())
	a, _ := joinAudit(t, writer)
	fmt.Fprintln(a, "meanwhile")
	writer.Close()
	natstest.Stop(elsewhere)
	start(port)
	expectLine(t, lines, "meanwhile")
}

// A line that is too long for the cluster is lost for the other replicas, which both sides say. The
// lines around it come, also if the stream takes less than the messages are long.
func TestAuditOfLongLines(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	_, js := natstest.Connect(t, nats)
	narrow := auditStream()
	narrow.MaxMsgSize = 1000
	if _, err := js.CreateStream(t.Context(), narrow); err != nil {
		t.Fatal(err)
	}
	writer, written := openLogged(t, nats.ClientURL())
	a, _ := joinAudit(t, writer)
	reader, read := openLogged(t, nats.ClientURL())
	_, lines := joinAudit(t, reader)
	const all = 100
	for i := range all {
		if i == all/2 {
			fmt.Fprintln(a, strings.Repeat("x", 2<<20))
		}
		fmt.Fprintf(a, "%0100d\n", i)
	}
	for i := range all {
		expectLine(t, lines, fmt.Sprintf("%0100d", i))
	}
	polltest.Until(t, "the writer reports the loss", func() bool { return strings.Contains(written.String(), "lines=1 ") })
	if text := read.String(); strings.Count(text, "misses lines") != 1 || !strings.Contains(text, "lines=1\n") {
		t.Errorf("the log of the reader is %s", text)
	}
}
