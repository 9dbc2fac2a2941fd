//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	network "github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A library is a program with a server of package server, one of three that share their tasks. Its
// tools say what becomes of a task when its process ends.
type library struct {
	Name, Address, Cluster string
	Recorder               recorder
}

const libraryVariable = "DOWEL_CHAOS_LIBRARY"

func init() { roles["library"] = runLibrary }

func runLibrary() {
	var l library
	if err := json.Unmarshal([]byte(os.Getenv(libraryVariable)), &l); err != nil {
		fail(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	shared, err := network.Open(context.Background(), network.Options{URL: l.Cluster, Logger: quiet})
	if err != nil {
		fail(err)
	}
	store := &recordedStore{shared.Tasks(), &l}
	s := server.New("library", "1", &server.Options{Keys: shared.Keys(), Tasks: store, MaxTasks: 1 << 20, Limit: server.Limit{PerSecond: -1}, Logger: quiet})
	again := server.TaskOptions{Mode: server.TaskMust, Poll: 50 * time.Millisecond}
	server.Tool(s, "once", "", l.work, server.ToolOptions{Task: again})
	server.Tool(s, "look", "", l.work, server.ToolOptions{Task: again, Annotations: mcp.ReadOnly})
	idempotent := true
	server.Tool(s, "same", "", l.work, server.ToolOptions{Task: again, Annotations: &mcp.ToolAnnotations{IdempotentHint: &idempotent}})
	again.Takeover = true
	server.Tool(s, "again", "", l.work, server.ToolOptions{Task: again})
	listener, err := net.Listen("tcp", l.Address)
	if err != nil {
		fail(err)
	}
	fmt.Println("READY", l.Name)
	fail(http.Serve(listener, streamable.Handler(s, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})))
}

func (l *library) step(job, what, value string) error {
	return l.Recorder.send(record{Step: &history.Step{Job: job, What: what, Value: value, By: l.Name}})
}

// work is the function of all tools.
func (l *library) work(ctx context.Context, j job) (string, error) {
	if _, err := server.Once(ctx, "start", func(context.Context) (bool, error) { return true, l.step(j.Job, "start", "") }); err != nil {
		return "", err
	}
	text := ""
	switch j.Kind {
	case "asks":
		r, err := server.Ask[reply](ctx, "q", "The answer for "+j.Job+"?")
		if err != nil {
			return "", err
		}
		if err := l.step(j.Job, "answer", r.Text); err != nil {
			return "", err
		}
		text = " " + r.Text
	case "waits":
		<-ctx.Done()
		return "", ctx.Err()
	}
	server.Progress(ctx, 1, 2, "half of "+j.Job)
	return resultOf(j.Job) + text, wait(ctx, j.pause())
}

// recordedStore tells the test of each version that the store has accepted.
type recordedStore struct {
	tasks.Store
	library *library
}

// Create implements [tasks.Store].
func (s *recordedStore) Create(ctx context.Context, r *tasks.Record, most int) error {
	err := s.Store.Create(ctx, r, most)
	if err == nil {
		s.record(r, 0)
	}
	return err
}

// Replace implements [tasks.Store].
func (s *recordedStore) Replace(ctx context.Context, next *tasks.Record) error {
	before := next.Version
	err := s.Store.Replace(ctx, next)
	if err == nil {
		s.record(next, before)
	}
	return err
}

func (s *recordedStore) record(r *tasks.Record, before uint64) {
	w := history.Write{Key: r.ID, Prev: before, Version: r.Version, Epoch: r.Epoch, Runner: r.Runner, By: s.Runner(), Process: s.library.Name, Status: string(r.Status)}
	if err := s.library.Recorder.send(record{Write: &w}); err != nil {
		fail(err)
	}
}

// startLibrary starts one of the three.
func (c *cluster) startLibrary(name string, port int, work string, nodes []string) *replica {
	c.t.Helper()
	r := &replica{address: fmt.Sprintf("127.0.0.1:%d", port)}
	urls := r.link(c.t, nodes, "library")
	config, err := json.Marshal(library{Name: name, Address: r.address, Cluster: strings.Join(urls, ","), Recorder: recorder(work + recordPath)})
	if err != nil {
		c.t.Fatal(err)
	}
	r.process = &process{t: c.t, name: name, ready: regexp.MustCompile("READY s"), command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVariable+"=library", libraryVariable+"="+string(config))
		return cmd
	}}
	r.start()
	c.t.Cleanup(r.kill)
	return r
}
