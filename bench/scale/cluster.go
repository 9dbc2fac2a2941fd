//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// principals is the number of the clients that each replica knows. Some limits count for each of
// them.
const principals = 100

// A cluster is a NATS server with replicas, and the server behind their gateways. Its owner must
// close it.
type cluster struct {
	s        *setting
	environ  []string // of the replicas, beside what each needs
	nats     *natsServer
	upstream *httptest.Server
	replicas []*replica
}

// replica is a process of dowel.
type replica struct {
	*process
	url string
}

// lessGarbage makes processes collect garbage early, so that their memory shows what they hold.
const lessGarbage = "GOGC=20"

// newCluster starts n replicas with variables of their own.
func newCluster(ctx context.Context, s *setting, n int, environ ...string) (*cluster, error) {
	folder, err := os.MkdirTemp(s.folder, "cluster-")
	if err != nil {
		return nil, err
	}
	c := &cluster{s: s, environ: environ, upstream: httptest.NewServer(newWork())}
	if err := c.start(ctx, folder, n); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, folder string, n int) (err error) {
	if c.nats, err = startNATS(ctx, folder); err != nil {
		return err
	}
	for range n {
		if err := c.addReplica(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) addReplica(ctx context.Context) error {
	r, err := startReplica(ctx, c.s, c.upstream.URL, c.environ, "--cluster", c.nats.url())
	if err == nil {
		c.replicas = append(c.replicas, r)
	}
	return err
}

func (c *cluster) close() (err error) {
	for _, r := range c.replicas {
		err = errors.Join(err, r.stop())
	}
	if c.nats != nil {
		err = errors.Join(err, c.nats.stop())
	}
	c.upstream.CloseClientConnections()
	c.upstream.Close()
	return err
}

// startReplica starts a dowel in a home of its own and waits until it serves its upstream.
func startReplica(ctx context.Context, s *setting, upstream string, environ []string, flags ...string) (*replica, error) {
	home, err := os.MkdirTemp(s.folder, "home-")
	if err != nil {
		return nil, err
	}
	if err := writeConfig(filepath.Join(home, "dowel", "dowel.json"), upstream); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.dowel, append([]string{"up", "--http", "127.0.0.1:0", "--console=off"}, flags...)...)
	cmd.Dir = home
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8"}, environ...)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+home)
	}
	p, err := startProcess(ctx, cmd, regexp.MustCompile(`http://127\.0\.0\.1:\d+`))
	if err != nil {
		return nil, err
	}
	r := &replica{process: p, url: p.ready + "/mcp"}
	for limit := time.Now().Add(startLimit); ; time.Sleep(50 * time.Millisecond) {
		err := r.echo(ctx)
		if err == nil {
			return r, nil
		}
		if time.Now().After(limit) {
			return nil, errors.Join(fmt.Errorf("the replica does not serve its upstream: %w", err), r.stop())
		}
	}
}

func writeConfig(file, upstream string) error {
	type object map[string]any
	clients := object{}
	for i := range principals {
		clients[fmt.Sprintf("c%d", i)] = object{"token": tokenOf(i)}
	}
	most := 1 << 30
	text, err := json.Marshal(object{
		"gateway": object{"token": "token-of-nobody", "clients": clients, "tasks": object{"after": "10ms"}, "limits": object{
			"sessions": most, "clientSessions": most, "streams": most, "clientStreams": most}},
		"mcpServers": object{"work": object{"url": upstream, "revision": "modern"}},
	})
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600))
}

func tokenOf(principal int) string { return fmt.Sprintf("token-of-principal-%d", principal%principals) }

// newWork returns the handler of the server behind all replicas.
func newWork() http.Handler {
	quiet := slog.New(slog.DiscardHandler)
	s := server.New("work", "1", &server.Options{Limit: server.Limit{PerSecond: -1}, Logger: quiet})
	type nothing struct{}
	server.Tool(s, "echo", "", func(context.Context, nothing) (string, error) { return "hello", nil })
	server.Tool(s, "rest", "", func(ctx context.Context, _ nothing) (string, error) {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			return "rested", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	server.Tool(s, "wait", "", func(ctx context.Context, _ nothing) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	return streamable.Handler(s, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
}

// web keeps its connections.
var web = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// Messages of a client without an SDK.
const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"scale","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listen      = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + modernMeta + `{}},"notifications":{"toolsListChanged":true}}}`

	// modernMeta ends before the client's capabilities.
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"scale","version":"1"},"io.modelcontextprotocol/clientCapabilities":`
	withTasks  = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// request sends a message of a principal. The caller must close the answer.
func (r *replica) request(ctx context.Context, principal int, method, body string, fields ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + tokenOf(principal)}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := web.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, errors.Join(fmt.Errorf("the answer is %s: %s", resp.Status, text), err, resp.Body.Close())
	}
	return resp, nil
}

// exchange sends a message and returns the session of the answer and its text.
func (r *replica) exchange(ctx context.Context, principal int, body string, fields ...string) (session, text string, err error) {
	resp, err := r.request(ctx, principal, http.MethodPost, body, fields...)
	if err != nil {
		return "", "", err
	}
	all, err := io.ReadAll(resp.Body)
	return resp.Header.Get("Mcp-Session-Id"), string(all), errors.Join(err, resp.Body.Close())
}

// callTool calls a tool in 2026-07-28 and returns the answer.
func (r *replica) callTool(ctx context.Context, principal int, name, capabilities string) (string, error) {
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + capabilities + `},"name":"` + name + `","arguments":{}}}`
	_, text, err := r.exchange(ctx, principal, call, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
	return text, err
}

func (r *replica) echo(ctx context.Context) error {
	text, err := r.callTool(ctx, 0, "work__echo", "{}")
	return checkEcho(text, err)
}

// startTask calls a slow tool until the gateway has made a task of the call. A call stays a call if
// its task could not be stored in time.
func (r *replica) startTask(ctx context.Context, principal int, name string) error {
	const tries = 10
	text := ""
	for range tries {
		var err error
		if text, err = r.callTool(ctx, principal, name, withTasks); err != nil || strings.Contains(text, `"taskId"`) {
			return err
		}
	}
	return fmt.Errorf("none of %d answers has a task; the last: %.300s", tries, text)
}

// openSession opens a session of 2025-11-25.
func (r *replica) openSession(ctx context.Context, principal int) (id string, err error) {
	id, text, err := r.exchange(ctx, principal, initialize)
	if err == nil && id == "" {
		err = fmt.Errorf("no session was opened: %.300s", text)
	}
	if err != nil {
		return "", err
	}
	_, _, err = r.exchange(ctx, principal, initialized, legacyFields(id)...)
	return id, err
}

func legacyFields(session string) []string {
	return []string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", session}
}

func checkEcho(text string, err error) error {
	if err == nil && !strings.Contains(text, `"text":"hello"`) {
		err = fmt.Errorf("the answer is %.300s", text)
	}
	return err
}
