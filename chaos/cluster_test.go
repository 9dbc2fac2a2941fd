//go:build linux

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// Tokens of the two users of a cluster, and of the clients that use one server.
const (
	ownToken   = "token-of-the-clients"
	otherToken = "token-of-another-user"
	everyToken = "token-of-all-paths"
)

// A cluster has replicas of dowel with NATS servers behind and a relay in front.
type cluster struct {
	t         *testing.T
	h         *history.History
	nodes     []*process
	replicas  []*replica // of dowel
	libraries []*replica // of a program with package server
	front     *relay     // of the replicas
	gate      *relay     // of the libraries
	values    *values

	mu     sync.Mutex
	owners map[string]string // the replica that got an operation, by its mark
}

// A replica is a dowel up --cluster that reaches each NATS server over a relay.
type replica struct {
	*process
	address string // of its gateway
	links   []*relay
}

// startCluster starts n NATS servers and three replicas, which serve one upstream.
func startCluster(t *testing.T, h *history.History, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, h: h, owners: map[string]string{}}
	work, v := serveWork(t, h)
	c.values = v
	var addresses []string
	c.nodes, addresses = startNodes(t, n)
	ports := findPorts(t, 6)
	var targets, others []target
	for i := range 3 {
		r := c.startReplica(fmt.Sprintf("r%d", i+1), ports[i], work, addresses)
		c.replicas, targets = append(c.replicas, r), append(targets, target{r.name, r.address})
		s := c.startLibrary(fmt.Sprintf("s%d", i+1), ports[3+i], work, addresses)
		c.libraries, others = append(c.libraries, s), append(others, target{s.name, s.address})
	}
	c.front, c.gate = newRelay(t, targets, c.noteOwner), newRelay(t, others, c.noteOwner)
	return c
}

// noteOwner notes which process got an operation first.
func (c *cluster) noteOwner(mark, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners[mark] == "" {
		c.owners[mark] = target
	}
}

// link starts a relay to each NATS server, and returns the URLs of a cluster there.
func (r *replica) link(t *testing.T, nodes []string, name string) (urls []string) {
	for _, node := range nodes {
		l := newRelay(t, []target{{"nats", node}}, nil)
		r.links, urls = append(r.links, l), append(urls, "nats://"+l.address()+"/"+name)
	}
	return urls
}

// startReplica starts one replica.
func (c *cluster) startReplica(name string, port int, work string, nodes []string) *replica {
	c.t.Helper()
	r := &replica{address: "127.0.0.1:" + strconv.Itoa(port)}
	urls := r.link(c.t, nodes, "chaos")
	home := c.t.TempDir()
	config := fmt.Sprintf(`{"gateway": {"clients": {"own": {"token": %q}, "other": {"token": %q}}, "token": %q},
		"mcpServers": {"work": {"url": %q, "revision": "modern"}, "old": {"url": %q, "revision": "2025-11-25"},
			"shared": {"command": %q, "sharing": "cluster", "env": {%q: "shared", %q: %q, %q: %q}}}}`,
		ownToken, otherToken, everyToken, work, work, os.Args[0], roleVariable, ownerVariable, name, recorderVariable, work+recordPath)
	file := filepath.Join(home, "dowel", "dowel.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
	r.process = &process{t: c.t, name: name, ready: regexp.MustCompile(`http://127\.0\.0\.1:\d+`), command: func() *exec.Cmd {
		cmd := exec.Command(dowelPath, "up", "--http", strconv.Itoa(port), "--cluster", strings.Join(urls, ","))
		cmd.Dir = home
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "LANG=C.UTF-8"}
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
			cmd.Env = append(cmd.Env, name+"="+home)
		}
		return cmd
	}}
	r.start()
	c.t.Cleanup(r.kill)
	c.awaitReplica(r)
	return r
}

// awaitReplica waits until a replica serves its upstream.
func (c *cluster) awaitReplica(r *replica) {
	c.t.Helper()
	polltest.UntilNil(c.t, func() error {
		one := newLegacyClient(c, "probe", "http://"+r.address+"/mcp", nil)
		ctx, cancel := context.WithTimeout(c.t.Context(), polltest.Limit)
		defer cancel()
		if err := one.open(ctx); err != nil {
			return err
		}
		defer one.end(ctx)
		return one.callTool(ctx, &exchange{tool: "work__echo", job: job{Job: newJob("probe")}})
	})
}

// ownerOf returns the replica that got an operation, or "".
func (c *cluster) ownerOf(mark string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[mark]
}

type markKey struct{}

// withMark names the operation of the requests of a context.
func withMark(ctx context.Context, mark string) context.Context {
	return context.WithValue(ctx, markKey{}, mark)
}

// headerOf returns the fields of a request.
func headerOf(ctx context.Context, token string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + token}}
	if mark, ok := ctx.Value(markKey{}).(string); ok {
		h.Set(markField, mark)
	}
	return h
}
