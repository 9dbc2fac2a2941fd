//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// sharedServers are replicas with the servers new and old, which run once in the cluster. old
// speaks 2025-11-25.
type sharedServers struct {
	t     *testing.T
	users []*testUser
	urls  []string
	log   string // each start of new writes a line
}

func startSharedServers(t *testing.T, n int) *sharedServers {
	t.Helper()
	return startSharing(t, make([]string, n)...)
}

// startSharing starts a replica for each of the settings of gateway, which begin with a comma if
// they are not empty.
func startSharing(t *testing.T, settings ...string) *sharedServers {
	t.Helper()
	cluster := natstest.Start(t, nil).ClientURL()
	s := &sharedServers{t: t, log: filepath.Join(t.TempDir(), "starts")}
	const script = `echo $$ >> "$LOG"; exec "$DOWEL" serve everything`
	for _, more := range settings {
		u := newTestUser(t)
		entry := func(log, more string) string {
			return fmt.Sprintf(`{"command": "/bin/sh", "args": ["-c", %q], "env": {"DOWEL": %q, "LOG": %q}, "sharing": "cluster"%s}`, script, testBinary(t), log, more)
		}
		u.writeFile(u.userFile(), fmt.Sprintf(`{"gateway": {"token": "a-token-of-all-replicas"%s}, "mcpServers": {"new": %s, "old": %s}}`,
			more, entry(s.log, ""), entry(s.log+"-old", `, "revision": "2025-11-25"`)))
		s.users, s.urls = append(s.users, u), append(s.urls, u.startDaemon("--cluster", cluster))
		if more != "" { // the first one is the owner
			u.awaitStates(map[string]hub.Status{"new": hub.Ready, "old": hub.Ready})
		}
	}
	for _, u := range s.users {
		u.awaitStates(map[string]hub.Status{"new": hub.Ready, "old": hub.Ready})
	}
	return s
}

// starts returns how often a server was started.
func (s *sharedServers) starts(suffix string) int {
	text, err := os.ReadFile(s.log + suffix)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// owner returns the replica that runs a server. All must agree on it.
func (s *sharedServers) owner(server string) (owner int) {
	s.t.Helper()
	owner = -1
	var all []string
	for i, u := range s.users {
		at := u.serverStates()[server].RunsAt
		if all = append(all, at); at == "this replica" {
			owner = i
		}
	}
	if owner < 0 {
		s.t.Fatalf("no replica runs %s: %q", server, all)
	}
	process := "(process " + strconv.Itoa(s.users[owner].cmd.Process.Pid) + ")"
	for i, at := range all {
		if i != owner && !strings.Contains(at, process) {
			s.t.Errorf("%s runs at %q by replica %d, want %s", server, at, i, process)
		}
	}
	return owner
}

// dial connects to a replica. The client answers questions.
func (s *sharedServers) dial(replica int, revision mcp.Revision) *client.Client {
	s.t.Helper()
	return s.dialMoving(replica, revision, replica)
}

// movingTransport sends requests to another host once hasMoved is set.
type movingTransport struct {
	http.Transport
	to       *url.URL
	hasMoved atomic.Bool
}

func (m *movingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.hasMoved.Load() {
		r = r.Clone(r.Context())
		r.URL.Host, r.Host = m.to.Host, m.to.Host
	}
	return m.Transport.RoundTrip(r)
}

// dialMoving is dial for a client whose requests reach another replica after its first answer to a
// question.
func (s *sharedServers) dialMoving(replica int, revision mcp.Revision, next int) *client.Client {
	s.t.Helper()
	at, err := url.Parse(s.urls[next])
	if err != nil {
		s.t.Fatal(err)
	}
	moving := &movingTransport{to: at}
	own := &http.Client{Transport: moving}
	c, err := client.Dial(s.t.Context(), s.urls[replica]+"/mcp", &client.Options{
		Wire: client.Wire{Revision: revision}, Logger: slog.New(slog.DiscardHandler), LogLevel: "info", NoCache: true,
		HTTP: client.HTTP{Client: own, Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer a-token-of-all-replicas"}}, nil
		}},
		Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			moving.hasMoved.Store(true)
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"username": "ann", "email": "ann@example.com"}`)}, nil
		}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close(); own.CloseIdleConnections() })
	return c
}

// A server with "sharing": "cluster" runs once. Clients of each replica use it as if it ran there.
// When its owner is killed, its calls end at once and another replica starts it.
func TestServerOncePerCluster(t *testing.T) {
	s := startSharedServers(t, 3)
	for _, suffix := range []string{"", "-old"} {
		if n := s.starts(suffix); n != 1 {
			t.Errorf("the server%s was started %d times, want 1", suffix, n)
		}
	}
	for _, server := range []string{"new", "old"} {
		other := (s.owner(server) + 1) % len(s.users)
		for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
			s.useServer(s.dial(other, revision), server, fmt.Sprintf("%s for a client of %s", server, revision))
		}
	}
	s.watchElsewhere()
	s.continueElsewhere()
	s.restartElsewhere()
	s.killOwner("new", "")
}

// watchElsewhere subscribes to changes of lists at each replica. Clients of the other ones cause
// them.
func (s *sharedServers) watchElsewhere() {
	for _, server := range []string{"new", "old"} {
		s.awaitTool(server, s.toggleTool(server, 0))
		for from := range s.users {
			for to := range s.users {
				s.watchChange(server, from, to)
			}
		}
	}
}

// watchChange subscribes at one replica to a change that a client of another one causes.
func (s *sharedServers) watchChange(server string, from, to int) {
	t := s.t
	ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
	defer cancel()
	w, err := s.dial(from, mcp.LatestRevision).Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
	if err != nil {
		t.Fatalf("%s at %d: %v", server, from, err)
	}
	defer w.Close()
	isThere, isKnown := s.toggleTool(server, to), false
	for change, err := range w.Changes() {
		if isKnown = err == nil && change.Method == mcp.NotificationToolsChanged; err != nil || isKnown {
			break
		}
	}
	if !isKnown {
		t.Errorf("%s, a change by %d: no list_changed at %d", server, to, from)
	}
	s.awaitTool(server, isThere) // a change back before that would be none
}

// toggleTool adds a tool to a server, or removes it, by a client of a replica.
func (s *sharedServers) toggleTool(server string, replica int) (isThere bool) {
	got, err := client.Call[string](s.t.Context(), s.dial(replica, mcp.LatestRevision), server+"__test_trigger_tool_change", nil)
	if err != nil {
		s.t.Fatalf("%s at %d: %v", server, replica, err)
	}
	return strings.HasPrefix(got, "Added")
}

// awaitTool waits until all replicas offer the tool, or none does.
func (s *sharedServers) awaitTool(server string, isThere bool) {
	for replica := range s.users {
		c := s.dial(replica, mcp.LatestRevision)
		polltest.Until(s.t, fmt.Sprintf("replica %d knows the tools of %s", replica, server), func() bool {
			tools, err := client.All(c.Tools(s.t.Context()))
			return err == nil && isThere == slices.ContainsFunc(tools, func(tool mcp.Tool) bool { return tool.Name == server+"__dynamic_tool" })
		})
	}
}

// continueElsewhere begins calls at each replica, and answers their questions at each other one.
func (s *sharedServers) continueElsewhere() {
	t := s.t
	for _, server := range []string{"new", "old"} {
		for from := range s.users {
			for to := range s.users {
				c := s.dialMoving(from, mcp.LatestRevision, to)
				got, err := client.Call[string](t.Context(), c, server+"__test_elicitation", map[string]string{"message": "who?"})
				if err != nil || !strings.Contains(got, "ann@example.com") {
					t.Errorf("%s, owner %d, a question at %d and the answer at %d: %q, %v", server, s.owner(server), from, to, got, err)
				}
			}
		}
	}
}

// restartElsewhere restarts a server by a replica that does not run it.
func (s *sharedServers) restartElsewhere() {
	t := s.t
	before := s.starts("-old")
	s.users[(s.owner("old")+1)%len(s.users)].expectSuccess("", "servers", "restart", "old")
	polltest.Until(t, "the server is started again", func() bool { return s.starts("-old") > before })
	for _, u := range s.users {
		u.awaitStates(map[string]hub.Status{"new": hub.Ready, "old": hub.Ready})
	}
	if n := s.starts("-old"); n != before+1 {
		t.Errorf("it was started %d times, want %d", n, before+1)
	}
}

// A slow call of a client of one replica becomes a task at the owner of the server. The client asks
// the owner for it.
func TestTaskAtOwnerOfSharedServer(t *testing.T) {
	s := startSharing(t, `, "tasks": {"after": "100ms"}`, `, "tasks": {"after": "1h"}`)
	if owner := s.owner("new"); owner != 0 {
		t.Fatalf("the owner is replica %d, want the first", owner)
	}
	task, _, err := s.dial(1, mcp.LatestRevision).StartTool(t.Context(), mcp.CallToolParams{Name: "new__slow", Arguments: json.RawMessage(`{"seconds": 600}`)})
	if err != nil || task == nil {
		t.Fatalf("%v, %v", task, err)
	}
	for replica := range s.users {
		state, err := s.dial(replica, mcp.LatestRevision).Resume(task.ID()).State(t.Context())
		if err != nil || state.Status != "working" {
			t.Errorf("at replica %d: %+v, %v", replica, state, err)
		}
	}
	if err := s.dial(0, mcp.LatestRevision).Resume(task.ID()).Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	for replica := range s.users {
		state, err := s.dial(replica, mcp.LatestRevision).Resume(task.ID()).State(t.Context())
		if err != nil || state.Status != "cancelled" {
			t.Errorf("at replica %d after the end: %+v, %v", replica, state, err)
		}
	}
}

// useServer uses everything that crosses from the owner to another replica.
func (s *sharedServers) useServer(c *client.Client, server, what string) {
	t := s.t
	ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
	defer cancel()
	if got, err := client.Call[string](ctx, c, server+"__test_elicitation", map[string]string{"message": "who?"}); err != nil || !strings.Contains(got, "ann@example.com") {
		t.Errorf("%s: a question: %q, %v", what, got, err)
	}
	progress, logged := 0, 0
	if _, err := client.Call[string](ctx, c, server+"__test_tool_with_progress", nil, client.CallOptions{OnProgress: func(mcp.ProgressParams) { progress++ }}); err != nil || progress != 3 {
		t.Errorf("%s: %d messages of progress, want 3; %v", what, progress, err)
	}
	if _, err := client.Call[string](ctx, c, server+"__test_tool_with_logging", nil, client.CallOptions{LogLevel: "info", OnLog: func(mcp.LoggingMessageParams) { logged++ }}); err != nil || logged != 3 {
		t.Errorf("%s: %d log messages, want 3; %v", what, logged, err)
	}
	cancelled, stop := context.WithCancel(ctx)
	began := time.Now()
	_, err := client.Call[string](cancelled, c, server+"__slow", map[string]int{"seconds": 600}, client.CallOptions{OnProgress: func(mcp.ProgressParams) { stop() }})
	if stop(); err == nil || time.Since(began) > polltest.Limit {
		t.Errorf("%s: the cancelled call: %v after %v", what, err, time.Since(began))
	}
	w, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://watched-resource"}})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer w.Close()
	if _, err := client.Call[string](ctx, c, server+"__test_trigger_tool_change", nil); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for change, err := range w.Changes() {
		if err != nil {
			t.Errorf("%s: no list_changed: %v", what, err)
			return
		}
		if change.Method == mcp.NotificationToolsChanged {
			return
		}
	}
}

// killOwner kills the owner of a server during a call of a client of another replica.
func (s *sharedServers) killOwner(server, suffix string) {
	t := s.t
	owner := s.owner(server)
	other := (owner + 1) % len(s.users)
	ended := s.beginSlowCall(other, server)
	killed := time.Now()
	s.kill(owner)
	select {
	case err := <-ended:
		t.Logf("the call in flight ended %v after the kill: %v", time.Since(killed), err)
		if err == nil || !strings.Contains(err.Error(), "has ended") || !strings.Contains(err.Error(), server) {
			t.Errorf("the call in flight: %v, want the cause", err)
		}
	case <-time.After(polltest.Limit):
		t.Fatal("the call in flight has not ended")
	}
	for _, u := range s.users {
		u.awaitStates(map[string]hub.Status{"new": hub.Ready, "old": hub.Ready})
	}
	t.Logf("another replica runs it %v after the kill", time.Since(killed))
	if n := s.starts(suffix); n != 2 {
		t.Errorf("it was started %d times, want 2", n)
	}
	for i := range s.users {
		got, err := client.Call[string](t.Context(), s.dial(i, mcp.LatestRevision), server+"__echo", map[string]string{"message": "hello"})
		if err != nil || !strings.Contains(got, "hello") {
			t.Errorf("a call after that: %q, %v", got, err)
		}
	}
	s.owner(server)
}

// Without a cluster, each dowel runs the server, and says so.
func TestSharingWithoutCluster(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"mcpServers": {"everything": `+u.builtInEntry("everything", `, "sharing": "cluster"`)+`}}`)
	if out := u.runDowel("doctor"); out.code != 0 || !strings.Contains(out.stderr, "everything: its \"sharing\": \"cluster\" means") {
		t.Errorf("doctor: %d, %s", out.code, out.stderr)
	}
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"everything": hub.Ready})
	u.expectSuccess("is no replica of a cluster", "status", "everything")
}
