package kv

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

func TestParseRedisURL(t *testing.T) {
	for text, want := range map[string]redisAddress{
		"redis://":                              {network: "tcp", address: "localhost:6379"},
		"redis://host/3":                        {network: "tcp", address: "host:6379", db: 3},
		"redis://host/2?pool_size=5&protocol=3": {network: "tcp", address: "host:6379", db: 2},
		"redis://host:1?db=4":                   {network: "tcp", address: "host:1", db: 4},
		"rediss://ada:p%40ss@[::1]:6380/0":      {network: "tcp", address: "[::1]:6380", username: "ada", password: "p@ss", isTLS: true},
		"redis://:secret@host":                  {network: "tcp", address: "host:6379", password: "secret"},
		"redis://secret@host":                   {network: "tcp", address: "host:6379", password: "secret"},
		"unix:///run/redis.sock":                {network: "unix", address: "/run/redis.sock"},
		"unix://ada:secret@/run/r.sock?db=2":    {network: "unix", address: "/run/r.sock", username: "ada", password: "secret", db: 2},
	} {
		if got, err := parseRedisURL(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"http://host":                 `unknown scheme "http"`,
		"host:6379":                   "scheme",
		"unix://":                     "names no socket",
		"redis://host/x":              `the database "x" is not a number`,
		"redis://host/-1":             "is not a number",
		"redis://a:secret@host?tls=1": `unknown parameter "tls"`,
		"redis://a:sec%zzret@host":    "escape",
	} {
		if got, err := parseRedisURL(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %+v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// startRedis starts a Redis with a password on a port of its own, and stops it at the end of the
// test.
func startRedis(t *testing.T, port string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--requirepass", "secret", "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	polltest.Until(t, "Redis listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return cmd
}

// A store with a password and a database works again after Redis has been restarted, and its watch
// reports the gap. A wrong password is refused, and no error contains a password.
func TestRedisRestart(t *testing.T) {
	redisURL(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	first := startRedis(t, port)
	if _, err := Redis(t.Context(), "redis://:wrong-secret@127.0.0.1:"+port, ""); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a wrong password: %v", err)
	}
	store, err := Redis(t.Context(), "redis://:secret@127.0.0.1:"+port+"/5", "")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	changes := record(t, store)
	set(t, store, "a", "1", 0)
	wantChange(t, changes, Created, "a")
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if _, err := store.Get(t.Context(), "a"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get without a Redis: %v", err)
	}
	startRedis(t, port)
	wantChange(t, changes, Missed, "")
	set(t, store, "b", "2", 0)
	if got := <-changes; got.Key != "b" { // Replaced if the keys are listed after Set, and then Created
		t.Errorf("got the change %+v, want one of b", got)
	}
}
