// Package examples runs the programs in its folders as users would: as processes of their own.
package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/mcp"
)

// hangTimeout bounds each wait. Only a program that hangs reaches it.
const hangTimeout = 2 * time.Minute

// buildExample compiles one example and returns its program.
func buildExample(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build ./%s: %v\n%s", name, err, out)
	}
	return program
}

// testContext ends after the test's cleanups that were registered later. [testing.T.Context] ends
// before them, and with it the programs that they interrupt.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hangTimeout)
	t.Cleanup(cancel)
	return ctx
}

// startWeb starts an example that serves HTTP and returns the URL that it prints.
func startWeb(t *testing.T, ctx context.Context, name string, args ...string) string {
	t.Helper()
	program := exec.CommandContext(ctx, buildExample(t, name), append(args, "-http", "127.0.0.1:0")...)
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	program.Stderr = t.Output()
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	program.WaitDelay = hangTimeout
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Signal(os.Interrupt)
		if err := program.Wait(); err != nil {
			t.Errorf("%s after an interrupt: %v", name, err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func dialServer(t *testing.T, ctx context.Context, target any, opts *client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(ctx, target, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestGreeter(t *testing.T) {
	ctx := testContext(t)
	c := dialServer(t, ctx, []string{buildExample(t, "greeter")}, nil)
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	if err != nil || text != "Hello, Ada!" {
		t.Errorf("greet: %q, %v", text, err)
	}
}

func TestOrder(t *testing.T) {
	ctx := testContext(t)
	program := buildExample(t, "order")
	for action, want := range map[string]string{"accept": "Order 1: one shirt in size M, wrapped as a gift.", "decline": "The order was cancelled."} {
		c := dialServer(t, ctx, []string{program}, &client.Options{Answers: client.Answers{
			Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
				if action == "decline" {
					return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
				}
				return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"size":"M","gift":true}`)}, nil
			},
		}})
		text, err := client.Call[string](ctx, c, "order", map[string]string{"item": "shirt"})
		if err != nil || text != want {
			t.Errorf("order with the answer %s: %q, %v; want %q", action, text, err, want)
		}
	}
}

func TestNotes(t *testing.T) {
	ctx := testContext(t)
	c := dialServer(t, ctx, startWeb(t, ctx, "notes"), nil)
	watch, err := c.Watch(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://today"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[string](ctx, c, "write_note", map[string]string{"day": "today", "text": "cheese"}); err != nil {
		t.Fatal(err)
	}
	for change, err := range watch.Changes() {
		if err != nil {
			t.Fatal(err)
		}
		if change.URI == "notes://today" {
			break
		}
	}
	read, err := c.ReadResource(ctx, "notes://today")
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "cheese" {
		t.Errorf("after the change: %+v, %v", read, err)
	}
	if _, err := c.ReadResource(ctx, "notes://never"); err == nil {
		t.Error("a note that does not exist was read")
	}
}

func TestExplore(t *testing.T) {
	ctx := testContext(t)
	explore, greeter := buildExample(t, "explore"), buildExample(t, "greeter")
	out, err := exec.CommandContext(ctx, explore, "-call", "greet", "-arguments", `{"name":"Ada"}`, greeter).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Greets a person.") || !strings.Contains(string(out), "Hello, Ada!") {
		t.Errorf("explore greeter: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(ctx, explore, "-call", "greet", "-arguments", `{"name":""}`, greeter).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the tool reports:") {
		t.Errorf("explore with a wrong argument: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(ctx, explore, startWeb(t, ctx, "notes")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "write_note") {
		t.Errorf("explore of a URL: %v\n%s", err, out)
	}
}

func TestOnegate(t *testing.T) {
	ctx := testContext(t)
	c := dialServer(t, ctx, startWeb(t, ctx, "onegate"), nil)
	sum, err := client.Call[float64](ctx, c, "calculator__add", map[string]float64{"a": 2, "b": 3})
	if err != nil || sum != 5 {
		t.Errorf("2 + 3 through the gateway: %v, %v", sum, err)
	}
	if now, err := client.Call[string](ctx, c, "clock__now", nil); err != nil {
		t.Error(err)
	} else if _, err := time.Parse(time.RFC3339, now); err != nil {
		t.Error(err)
	}
}

// Two processes behind a balancer, which gives each request to the other one than the request
// before.
func TestReplicas(t *testing.T) {
	ctx := testContext(t)
	nats := natstest.Start(t, nil).ClientURL() + "/coffee"
	one, two := startWeb(t, ctx, "replicas", "-nats", nats), startWeb(t, ctx, "replicas", "-nats", nats)
	var turn atomic.Int64
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(one)
		if turn.Add(1)%2 == 0 {
			to, err = url.Parse(two)
		}
		if err != nil {
			panic(err)
		}
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
	}})
	t.Cleanup(func() { front.CloseClientConnections(); front.Close(); http.DefaultClient.CloseIdleConnections() })
	for _, revision := range []mcp.Revision{mcp.Revision20251125, mcp.LatestRevision} {
		c := dialServer(t, ctx, front.URL+"/mcp", &client.Options{Wire: client.Wire{Revision: revision}, Answers: client.Answers{
			Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"value":"large"}`)}, nil
			},
		}})
		for range 3 {
			if text, err := client.Call[string](ctx, c, "order", nil); err != nil || !strings.HasPrefix(text, "A large coffee from process ") {
				t.Errorf("%s: order: %q, %v", revision, text, err)
			}
		}
		if text, err := client.Call[string](ctx, c, "brew", nil); err != nil || text != "The coffee is ready." {
			t.Errorf("%s: brew: %q, %v", revision, text, err)
		}
	}
}
