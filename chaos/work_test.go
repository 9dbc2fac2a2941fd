//go:build linux

package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// job is what the tools of the upstream take: each call has a job of its own.
type job struct {
	Job    string `json:"job"`
	Kind   string `json:"kind,omitempty"`
	Millis int    `json:"millis,omitempty"`
	Count  int    `json:"count,omitempty"`
}

func (j job) pause() time.Duration { return time.Duration(j.Millis) * time.Millisecond }

type reply struct {
	Text string `json:"text"`
}

// serveWork runs the server behind all replicas. It stays up, and its handlers write down what they
// do. Other processes send what they do to recordPath.
func serveWork(t *testing.T, h *history.History) (url string, v *values) {
	s := server.New("work", "1", &server.Options{MaxTasks: 1 << 20, Limit: server.Limit{PerSecond: -1}, Logger: slog.New(slog.DiscardHandler)})
	start := func(ctx context.Context, j job) error {
		_, err := server.Once(ctx, "start", func(context.Context) (bool, error) { h.AddStep(j.Job, "start", "", ""); return true, nil })
		return err
	}
	ask := func(ctx context.Context, j job) (string, error) {
		r, err := server.Ask[reply](ctx, "q", "The answer for "+j.Job+"?")
		if err == nil {
			h.AddStep(j.Job, "answer", r.Text, "")
		}
		return r.Text, err
	}
	server.Tool(s, "echo", "Answers at once.", func(ctx context.Context, j job) (string, error) {
		return resultOf(j.Job), start(ctx, j)
	})
	server.Tool(s, "ask", "Asks once.", func(ctx context.Context, j job) (string, error) {
		if err := start(ctx, j); err != nil {
			return "", err
		}
		text, err := ask(ctx, j)
		return resultOf(j.Job) + " " + text, err
	})
	server.Tool(s, "steps", "Reports steps.", func(ctx context.Context, j job) (string, error) {
		h.AddStep(j.Job, "start", "", "")
		for i := range j.Count {
			if err := wait(ctx, j.pause()); err != nil {
				return "", err
			}
			server.Log(ctx).Info(fmt.Sprintf("step %d of %s", i+1, j.Job))
		}
		return resultOf(j.Job), nil
	})
	server.Tool(s, "task", "Works as a task.", func(ctx context.Context, j job) (string, error) {
		if err := start(ctx, j); err != nil {
			return "", err
		}
		text := ""
		if j.Kind == "asks" {
			var err error
			if text, err = ask(ctx, j); err != nil {
				return "", err
			}
			text = " " + text
		}
		if j.Kind == "waits" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return resultOf(j.Job) + text, wait(ctx, j.pause())
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: 50 * time.Millisecond}})
	v = addValues(s, h)
	endpoint := streamable.Handler(s, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(slog.DiscardHandler)}})
	paths := http.NewServeMux()
	paths.Handle("/", endpoint)
	paths.HandleFunc(recordPath, func(w http.ResponseWriter, r *http.Request) { takeRecord(w, r, h) })
	web := httptest.NewServer(paths)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close(); s.Close() })
	return web.URL, v
}

// resultOf returns the result of a job without a question.
func resultOf(job string) string { return "done " + job }

// wait is the work of a handler.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
