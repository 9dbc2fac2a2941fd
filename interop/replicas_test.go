package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/server"
)

// nginxConfig has nginx's default settings for streams, which give each request to the next
// replica. It adds the token, because the clients have none, and names the replica in each answer.
const nginxConfig = `daemon off;
master_process off;
pid DIR/pid;
error_log DIR/error.log;
events { worker_connections 1024; }
http {
	client_max_body_size 8m;
	access_log off;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	upstream replicas { SERVERS }
	server {
		listen 127.0.0.1:PORT;
		location / {
			proxy_pass http://replicas;
			proxy_set_header Host $http_host;
			proxy_set_header Authorization "Bearer token-of-all-replicas";
			add_header X-Replica $upstream_addr always;
		}
	}
}
`

// startReplicas starts three processes of dowel up --cluster in front of one server with all
// features and one with tasks, and nginx in front of the three. It returns the URL of nginx.
func startReplicas(t *testing.T) string {
	t.Helper()
	nats := natstest.Start(t, nil).ClientURL() + "/nginx"
	every := startService(t, dowelService(t)).urlOf("/mcp")
	tasks := serveHTTP(t, tasksServer(t, nil))
	var servers []string
	for range 3 {
		home := t.TempDir()
		file := filepath.Join(home, "dowel", "dowel.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"gateway": {"token": "token-of-all-replicas"}, "mcpServers": {"every": {"url": %q}, "tasks": {"url": %q}}}`, every, tasks), 0o600); err != nil {
			t.Fatal(err)
		}
		r := startService(t, func(port string) []string {
			words := []string{"env"}
			for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
				words = append(words, name+"="+home)
			}
			return append(words, binaryPath(t, "dowel"), "up", "--http", port, "--cluster", nats)
		})
		servers = append(servers, "127.0.0.1:"+r.port)
	}
	front := startNginx(t, servers)
	for range 3 {
		awaitReplica(t, front+"/mcp/every")
	}
	return front
}

// startNginx starts nginx in front of servers at addresses, and returns its URL.
func startNginx(t *testing.T, addresses []string) string {
	t.Helper()
	return startService(t, func(port string) []string {
		dir, servers := t.TempDir(), ""
		for _, address := range addresses {
			servers += "server " + address + "; "
		}
		text := strings.NewReplacer("DIR", dir, "PORT", port, "SERVERS", servers).Replace(nginxConfig)
		if err := os.WriteFile(dir+"/nginx.conf", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{nginxPath(t), "-c", dir + "/nginx.conf", "-p", dir}
	}).urlOf("")
}

func nginxPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("nginx is missing: run make -C .. nginx")
	return ""
}

// awaitReplica waits until the next replica serves its upstream.
func awaitReplica(t *testing.T, url string) {
	t.Helper()
	polltest.UntilNil(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
		defer cancel()
		c, err := client.Dial(ctx, url, nil)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = client.Call[string](ctx, c, "echo", map[string]string{"message": "hello"})
		return err
	})
}

// The clients of the SDKs do everything through nginx that they do with one server: they answer
// questions, subscribe and use tasks, and each request may reach another replica. They run one
// after the other, because they share a server.
func TestReplicasBehindNginx(t *testing.T) {
	t.Parallel()
	began := time.Now()
	url := startReplicas(t)
	all := typeScriptClients(t, "dowel up", overHTTP)
	for _, revision := range []string{modernRevision, "2025-11-25"} {
		all["gosdk-client "+revision] = goClient(t, "gosdk-client", overHTTP, revision, notInEverything)
	}
	for name, words := range all {
		t.Run(name, func(t *testing.T) { runClient(t, append(words, url+"/mcp/every")...) })
	}
	t.Run("tasks", func(t *testing.T) { runClient(t, "node", scriptPath(t, "tasks-client.mjs"), url+"/mcp", "tasks__") })
	t.Run("tasks v2", func(t *testing.T) { runClient(t, "node", scriptPath(t, "tasks-client-v2.mjs"), url+"/mcp", "tasks__") })
	for _, sdk := range []string{"v1", "v2"} {
		t.Run("resume "+sdk, func(t *testing.T) { runClient(t, "node", scriptPath(t, "resume.mjs"), sdk, url+"/mcp/every") })
	}
	t.Run("resume Go SDK", func(t *testing.T) { runClient(t, binaryPath(t, "gosdk-resume"), url+"/mcp/every") })
	for _, revision := range []string{modernRevision, "2025-11-25"} {
		t.Run("tasks Go SDK "+revision, func(t *testing.T) { runClient(t, binaryPath(t, "gosdk-tasks"), revision, url+"/mcp", "tasks__") })
	}
	t.Logf("all clients took %v", time.Since(began))
}

// The servers of a library user are replicas too: three of them behind nginx have the same tasks.
func TestLibraryReplicasBehindNginx(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil).ClientURL() + "/library"
	var addresses []string
	for range 3 {
		c, err := cluster.Open(t.Context(), nats, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		at := serveHTTP(t, tasksServer(t, &server.Options{Keys: c.Keys()}))
		addresses = append(addresses, strings.TrimPrefix(at, "http://"))
	}
	url := startNginx(t, addresses)
	t.Run("tasks", func(t *testing.T) { runClient(t, "node", scriptPath(t, "tasks-client.mjs"), url+"/mcp") })
	t.Run("tasks v2", func(t *testing.T) { runClient(t, "node", scriptPath(t, "tasks-client-v2.mjs"), url+"/mcp") })
	for _, revision := range []string{modernRevision, "2025-11-25"} {
		t.Run("tasks Go SDK "+revision, func(t *testing.T) { runClient(t, binaryPath(t, "gosdk-tasks"), revision, url+"/mcp") })
	}
}
