package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Each request of a session reaches another replica, and a question is answered at another replica
// than the asking one.
func TestCallsAndQuestions(t *testing.T) {
	t.Parallel()
	_, front := startReplicas(t, func(r *replicaServer) {
		server.Tool(r.server, "where", "", func(context.Context, struct{}) (string, error) { return r.name, nil })
		server.Tool(r.server, "greet", "", func(ctx context.Context, _ struct{}) (string, error) {
			first, err := server.Ask[string](ctx, "first", "Who?")
			if err != nil {
				return "", err
			}
			second, err := server.Ask[string](ctx, "second", "And who else?")
			return first + " and " + second, err
		})
	})
	inEras(t, front, func(t *testing.T, c *client.Client) {
		var names []string
		for range 6 {
			names = append(names, call(t, c, "where"))
		}
		slices.Sort(names)
		if got := slices.Compact(names); len(got) != 3 {
			t.Errorf("the calls have reached the replicas %v", got)
		}
		for range 3 { // begins at each replica
			if got := call(t, c, "greet"); got != "Ada and Ada" {
				t.Error(got)
			}
			call(t, c, "where")
		}
	})
}

// A legacy call whose connection is lost continues at another replica: no progress is
// lost or repeated.
func TestResumption(t *testing.T) {
	t.Parallel()
	steps, reported, owner := make(chan float64), make(chan float64), make(chan *replicaServer, 1)
	_, front := startReplicas(t, func(r *replicaServer) {
		server.Tool(r.server, "steps", "", func(ctx context.Context, _ struct{}) (string, error) {
			owner <- r
			for n := range steps {
				server.Progress(ctx, n, 0, "")
			}
			return "done", nil
		})
	})
	c := front.dial(t, mcp.Revision20251125)
	outcome := make(chan error, 1)
	go func() {
		text, err := client.Call[string](t.Context(), c, "steps", nil, client.CallOptions{OnProgress: func(p mcp.ProgressParams) { reported <- p.Progress }})
		if err == nil && text != "done" {
			err = errors.New(text)
		}
		outcome <- err
	}()
	for n := 1.0; n <= 12; n++ {
		steps <- n
		if n > 1 {
			if got := <-reported; got != n-1 {
				t.Errorf("step %v was reported in place of %v", got, n-1)
			}
		}
		if n == 4 || n == 8 {
			front.cut(http.MethodPost)
			front.cut(http.MethodGet)
		}
	}
	close(steps)
	if got := <-reported; got != 12 {
		t.Errorf("the last step is %v", got)
	}
	if err := <-outcome; err != nil {
		t.Error(err)
	}
	here := (<-owner).web.URL
	if all := front.resumptions(); !slices.ContainsFunc(all, func(url string) bool { return url != here }) {
		t.Errorf("the client has resumed at %v, and the call ran at %s", all, here)
	}
}

// An exchange of the keys keeps sessions and everything that the old key has sealed.
func TestRotateKeys(t *testing.T) {
	t.Parallel()
	all, front := startReplicas(t, func(r *replicaServer) {
		server.Tool(r.server, "where", "", func(context.Context, struct{}) (string, error) { return r.name, nil })
	})
	c := front.dial(t, mcp.Revision20251125)
	before := all[1].cluster.Keys().For("test").Seal([]byte("x"), nil)
	if err := all[0].cluster.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the old key is exchanged", func() bool { return all[2].cluster.RotateKeys(t.Context()) == nil })
	for range 3 {
		call(t, c, "where")
	}
	if _, err := all[2].cluster.Keys().For("test").Open(before, nil); err != nil {
		t.Errorf("after the exchange: %v", err)
	}
}

// Err tells a health check that the cluster cannot be reached.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	start := natstest.Restartable(t)
	nats := start()
	c, err := cluster.Open(t.Context(), nats.ClientURL(), &cluster.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return errors.Is(c.Err(), replica.ErrUnreachable) })
	start()
	polltest.Until(t, "the cluster is reached again", func() bool { return c.Err() == nil })
	if c, err := cluster.Open(t.Context(), "http://127.0.0.1:1", nil); err == nil {
		c.Close()
		t.Error("an address of HTTP was accepted")
	}
}

// A login at one replica is one of all, and changes of it follow on each other.
func TestLogins(t *testing.T) {
	t.Parallel()
	all, _ := startReplicas(t, func(*replicaServer) {})
	var changes sync.WaitGroup
	for _, r := range all {
		changes.Go(func() {
			err := r.cluster.Logins(nil).Update(t.Context(), "key", func(record *auth.Record) (*auth.Record, error) {
				if record == nil {
					record = &auth.Record{Server: "https://example.com"}
				}
				record.AccessToken += "x"
				return record, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	changes.Wait()
	for _, r := range all {
		if record, err := r.cluster.Logins(nil).Load(t.Context(), "key"); err != nil || record == nil || record.AccessToken != "xxx" {
			t.Errorf("%+v, %v", record, err)
		}
	}
}
