//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	initializeMessage = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	listMessage       = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// outageLimit is far below every limit of a call and of the cluster's operations together.
const outageLimit = 8 * time.Second

// Without the NATS server, a replica makes the calls that need no shared state and refuses the
// others at once: sessions with status 503, tasks with -32603. Nothing is kept in the memory of the
// replica instead. When the server is back, everything works again.
func TestClusterIsAway(t *testing.T) {
	start := natstest.Restartable(t)
	nats := start()
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas", "tasks": {"after": "20ms"}}, "mcpServers": {"new": `+u.builtInEntry("everything", "")+`}}`)
	url := u.startDaemon("--cluster", nats.ClientURL())
	u.awaitStates(map[string]hub.Status{"new": hub.Ready})
	s := &sharedServers{t: t, users: []*testUser{u}, urls: []string{url}}
	modern := s.dial(0, mcp.LatestRevision)
	echo := func(when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), outageLimit)
		defer cancel()
		if got, err := client.Call[string](ctx, modern, "new__echo", map[string]string{"message": "hello"}); err != nil || !strings.Contains(got, "hello") {
			t.Errorf("%s: a call: %q, %v", when, got, err)
		}
	}
	echo("at first")
	session, ended := u.postMessage(url, "", initializeMessage), u.postMessage(url, "", initializeMessage)
	task, _, err := modern.StartTool(t.Context(), mcp.CallToolParams{Name: "new__slow", Arguments: json.RawMessage(`{"seconds": 600}`)})
	if err != nil || task == nil {
		t.Fatalf("%v, %v", task, err)
	}
	natstest.Stop(nats)
	polltest.Until(t, "status and doctor say that the cluster is away", func() bool {
		return strings.Contains(u.runDowel("status").stderr, "cannot be reached") && strings.Contains(u.runDowel("doctor", "new").stderr, "start the NATS server again")
	})
	echo("without the cluster")
	header, token := u.readTokenHeader() // runs dowel, which the measured time must not include
	began := time.Now()
	for _, request := range []struct{ name, method, session, message string }{
		{"a request of a session", http.MethodPost, session, listMessage},
		{"the end of a session", http.MethodDelete, ended, ""},
		{"a new session", http.MethodPost, "", initializeMessage},
	} {
		if resp, _ := u.sendWithHeader(header, token, request.method, url, request.session, request.message); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d, want 503", request.name, resp.StatusCode)
		}
	}
	_, err = task.State(t.Context())
	if failed, ok := errors.AsType[*mcp.Error](err); !ok || failed.Code != jsonrpc.CodeInternal {
		t.Errorf("the state of a task: %v, want -32603", err)
	}
	if took := time.Since(began); took > outageLimit {
		t.Errorf("the refusals took %v", took)
	}
	start()
	polltest.Until(t, "the session goes on", func() bool { return u.requestSession(http.MethodPost, url, session, listMessage) == http.StatusOK })
	polltest.Until(t, "the task is there", func() bool {
		state, err := task.State(t.Context())
		return err == nil && state.Status == "working"
	})
	if err := task.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	u.postMessage(url, "", initializeMessage)
	echo("with the cluster")
	polltest.Until(t, "the status has no problem", func() bool { return strings.Contains(u.runDowel("status").stdout, "One of 1 replicas") })
}

// The replicas exchange the sealing key while they serve clients. All replicas know a session at
// every moment, whichever of them has opened it. Sessions under the old key continue.
func TestKeyRotationOfReplicas(t *testing.T) {
	cluster := natstest.Start(t, nil).ClientURL()
	s := &sharedServers{t: t}
	for range 2 {
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas"}, "mcpServers": {"new": `+u.builtInEntry("everything", "")+`}}`)
		s.users, s.urls = append(s.users, u), append(s.urls, u.startDaemon("--cluster", cluster))
		u.awaitStates(map[string]hub.Status{"new": hub.Ready})
	}
	old := s.users[0].postMessage(s.urls[0], "", initializeMessage)
	known := func(session string) {
		t.Helper()
		for i, u := range s.users {
			if status := u.requestSession(http.MethodPost, s.urls[i], session, listMessage); status != http.StatusOK {
				t.Errorf("replica %d: status %d for a session", i, status)
			}
		}
	}
	known(old)
	third := newTestUser(t)
	third.writeFile(third.userFile(), `{"gateway": {"token": "a-token-of-all-replicas"}, "mcpServers": {}}`)
	renewing := third.newCommand("up", "--http", "0", "--cluster", cluster, "--new-key")
	if err := renewing.Start(); err != nil { // the rounds below run while it joins
		t.Fatal(err)
	}
	defer func() { _ = renewing.Wait() }()
	defer func() { _ = renewing.Process.Kill() }()
	rounds := 0
	polltest.Until(t, "both seal with the new key", func() bool {
		for i, u := range s.users {
			known(u.postMessage(s.urls[i], "", initializeMessage))
		}
		known(old)
		rounds++
		for _, u := range s.users {
			if !strings.Contains(u.runDowel("status").stdout, "1 older accepted") {
				return false
			}
		}
		return true
	})
	for i, u := range s.users {
		known(u.postMessage(s.urls[i], "", initializeMessage))
	}
	known(old)
	t.Logf("%d rounds until the new key sealed", rounds)
	s.users[0].stopDaemon() // a replica that joins now has both keys
	s.urls[0] = s.users[0].startDaemon("--cluster", cluster)
	s.users[0].awaitStates(map[string]hub.Status{"new": hub.Ready})
	known(old)
	known(s.users[1].postMessage(s.urls[1], "", initializeMessage))
}
