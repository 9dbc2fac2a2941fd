package control_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// controller records its calls.
type controller struct {
	hub *hub.Hub
	did chan string
}

func (c *controller) Status() control.Status {
	return control.Status{PID: 1, Servers: control.DescribeAll(c.hub)}
}

func (c *controller) Do(_ context.Context, name, verb string) error {
	if c.hub.Upstream(name) == nil {
		return control.ErrNoServer
	}
	c.did <- verb + " " + name
	return nil
}

func (c *controller) TrustQuestion(name string) (control.TrustQuestion, error) {
	return control.TrustQuestion{Name: name, Seen: "1", Facts: []string{"command npx"}}, nil
}

func (c *controller) Trust(_ context.Context, name string, a control.TrustAnswer) error {
	c.did <- "trust " + name + " " + a.Seen
	return nil
}

func (c *controller) OpenConsole(context.Context) (control.ConsoleLogin, error) {
	return control.ConsoleLogin{URL: "http://127.0.0.1:1/console/#login=x"}, nil
}

func (c *controller) Token(_ context.Context, renew bool) (string, error) {
	if renew {
		return "new", nil
	}
	return "old", nil
}

func (c *controller) Reload(context.Context) error { return errors.New("dowel.json:1:1: it is broken") }

func (c *controller) LogIn(_ context.Context, name string, show func(control.LoginPage)) error {
	show(control.LoginPage{URL: "https://as.example/authorize?of=" + name, Port: 1})
	return errors.New("the user has closed the page")
}

func (c *controller) Logout(context.Context, control.Login) error { return nil }

func (c *controller) ClusterSync(context.Context) replica.Sync { return replica.SyncLazy }

func (c *controller) Yield(context.Context) error { return errors.New("it serves others") }

func (c *controller) RequestStop(context.Context) error {
	return errors.New("it belongs to a client")
}

func running(t *testing.T) (*control.Client, *controller, string) {
	t.Helper()
	h := hub.New(nil)
	t.Cleanup(func() { h.Close() })
	h.Apply([]hub.Definition{{Name: "one/two", Target: everything.New(), Origin: "built in"}}, "the test begins")
	h.Settle(t.Context())
	c := &controller{h, make(chan string, 1)}
	path := filepath.Join(t.TempDir(), "run", "dowel.sock")
	if runtime.GOOS == "windows" {
		path = `\\.\pipe\dowel-test-` + filepath.Base(t.TempDir())
	}
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: control.Handler(control.Running{Life: t.Context(), Controller: c, Hub: h}, nil)}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
	return control.NewClient(path), c, path
}

func TestControl(t *testing.T) {
	c, did, path := running(t)
	s, err := c.Status(t.Context())
	if err != nil || len(s.Servers) != 1 || s.Servers[0].Name != "one/two" || s.Servers[0].Status != hub.Ready || s.Servers[0].Tools == 0 ||
		s.Servers[0].Era != "modern" || s.Servers[0].Origin != "built in" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := c.Do(t.Context(), "one/two", "restart"); err != nil || <-did.did != "restart one/two" {
		t.Error(err)
	}
	if err := c.Do(t.Context(), "three", "restart"); err == nil || !strings.Contains(err.Error(), "no such server") {
		t.Error(err)
	}
	if err := c.RequestStop(t.Context()); err == nil || err.Error() != "it belongs to a client" {
		t.Errorf("stop: %v", err)
	}
	if err := c.Yield(t.Context()); err == nil || err.Error() != "it serves others" {
		t.Error(err)
	}
	if err := c.Reload(t.Context()); err == nil || err.Error() != "dowel.json:1:1: it is broken" {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	if _, err := control.Listen(path); !errors.Is(err, control.ErrRunning) {
		t.Error(err)
	}
}

func TestEvents(t *testing.T) {
	c, did, _ := running(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil { // until it is heard
			did.hub.Upstream("one/two").Restart("the test wants it")
			time.Sleep(50 * time.Millisecond)
		}
	}()
	for e, err := range c.Events(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "state" && e.Server == "one/two" && e.Status == hub.Ready {
			return
		}
	}
	t.Error("nothing was heard")
}

func TestNotRunning(t *testing.T) {
	_, err := control.NewClient(filepath.Join(t.TempDir(), "none.sock")).Status(t.Context())
	if !errors.Is(err, control.ErrNotRunning) {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "left.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	l, err := control.Listen(path) // the socket of a killed process is taken over
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
