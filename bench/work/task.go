package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/taskstore"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// The contestants of tasks. All of them are dowel.
const (
	synced     = "write and fsync"
	transition = "transition"
	plainCall  = "call"
	poll       = "poll"
)

// taskItems measures what a task costs on the disk, and what its client's polls cost.
func taskItems() []Item {
	return []Item{
		{
			Name:        "task/transition",
			Table:       "A change of a task of 1 KiB on the disk",
			Rows:        []Row{{"one at a time", Time, Bound{Base: 4}}},
			Contestants: []string{synced, transition},
			Measure: func(ctx context.Context, contestant string, o Options) (Result, error) {
				return inFolder(func(folder string) (Result, error) {
					if contestant == synced {
						return measureSync(folder, o.withDefaults())
					}
					return measureTransition(ctx, folder, o.withDefaults())
				})
			},
		},
		{
			Name:        "task/poll",
			Table:       "A poll of a task over HTTP, 2026-07-28",
			Rows:        []Row{{"one at a time", Time, Bound{Base: 1.3}}},
			Contestants: []string{plainCall, poll},
			Measure: func(ctx context.Context, contestant string, o Options) (Result, error) {
				return inFolder(func(folder string) (Result, error) { return measurePoll(ctx, folder, contestant, o.withDefaults()) })
			},
		},
	}
}

// inFolder measures with a new folder.
func inFolder(measure func(folder string) (Result, error)) (Result, error) {
	folder, err := os.MkdirTemp("", "bench-tasks")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	return measure(folder)
}

// measureSync appends 1 KiB to a file and syncs it.
func measureSync(folder string, o Options) (r Result, err error) {
	file, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	block := make([]byte, 1<<10)
	return o.repeat(1, here, func() error {
		if _, err := file.Write(block); err != nil {
			return err
		}
		return file.Sync()
	})
}

// measureTransition changes a task in a store.
func measureTransition(ctx context.Context, folder string, o Options) (r Result, err error) {
	store := taskstore.OnDisk(filepath.Join(folder, "tasks"))
	defer func() { err = errors.Join(err, store.Close()) }()
	padding, err := json.Marshal(string(make([]byte, 128))) // each zero byte becomes six
	if err != nil {
		return nil, err
	}
	now := time.Now()
	record := &tasks.Record{ID: rand.Text(), Owner: "ann", Tool: "t", Status: tasks.Working, Created: now, Updated: now, TTL: time.Hour, Params: padding}
	if err := store.Create(ctx, record, 0); err != nil {
		return nil, err
	}
	return o.repeat(1, here, func() error {
		_, stored, err := tasks.Update(ctx, store, record.ID, func(next *tasks.Record) bool { next.Asked++; return true })
		if err == nil && !stored {
			err = errors.New("the change was not stored")
		}
		return err
	})
}

// measurePoll calls a small tool over HTTP, or asks for the state of a task.
func measurePoll(ctx context.Context, folder, contestant string, o Options) (Result, error) {
	store := taskstore.OnDisk(filepath.Join(folder, "tasks"))
	defer store.Close()
	s := server.New("tasks", "1", &server.Options{Tasks: store, Limit: server.Limit{PerSecond: -1}, Logger: slog.New(slog.DiscardHandler)})
	defer s.Close()
	server.Tool(s, "echo", "", func(_ context.Context, in struct{ Message string }) (string, error) { return in.Message, nil })
	server.Tool(s, "work", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust}})
	handler := streamable.Handler(s, nil)
	defer handler.Shutdown(context.Background())
	served := httptest.NewServer(handler)
	defer served.Close()
	own := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	defer own.CloseIdleConnections()
	c, err := client.Dial(ctx, served.URL, &client.Options{HTTP: client.HTTP{Client: own}, Wire: client.Wire{Revision: mcp.LatestRevision}, NoCache: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if contestant == plainCall {
		return o.repeat(1, here, func() error {
			got, err := client.Call[string](ctx, c, "echo", map[string]string{"Message": "hello"})
			if err == nil && got != "hello" {
				err = fmt.Errorf("the answer is %q", got)
			}
			return err
		})
	}
	task, _, err := c.StartTool(ctx, mcp.CallToolParams{Name: "work"})
	if err != nil {
		return nil, err
	}
	return o.repeat(1, here, func() error {
		state, err := task.State(ctx)
		if err == nil && state.Status != "working" {
			err = fmt.Errorf("the task is %s", state.Status)
		}
		return err
	})
}
