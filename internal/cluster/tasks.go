package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/taskengine"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/nats-io/nats.go/jetstream"
)

// storedTasks is a [tasks.Store] that all replicas share. It opens its stream with the first task,
// or with the first question about one.
type storedTasks struct {
	cluster *Cluster

	mu      sync.Mutex         // guards the rest
	engine  *taskengine.Engine // has read all records; nil before
	opening *openingTasks      // nil if nothing opens the stream
}

// openingTasks opens the stream for all requests that wait for it.
type openingTasks struct {
	done   chan struct{} // closed at the end
	engine *taskengine.Engine
	err    error
}

// Tasks returns the tasks of all replicas.
func (c *Cluster) Tasks() tasks.Store { return &c.tasks }

// open returns the engine. It fails at once while the cluster cannot be reached. While the records
// are read, it waits until ctx ends.
func (s *storedTasks) open(ctx context.Context) (*taskengine.Engine, error) {
	c := s.cluster
	if c.ctx.Err() != nil {
		return nil, tasks.ErrClosed
	}
	if err := c.checkConnected(); err != nil {
		return nil, fmt.Errorf("the tasks of the cluster %s: %w", c.name, err)
	}
	engine, opening := s.beginOpening()
	if engine != nil {
		return engine, nil
	}
	select {
	case <-opening.done:
		return opening.engine, opening.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// beginOpening returns the engine, or the attempt to open it. After an attempt that has failed, it
// begins another one.
func (s *storedTasks) beginOpening() (*taskengine.Engine, *openingTasks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine != nil || s.opening != nil {
		return s.engine, s.opening
	}
	o := &openingTasks{done: make(chan struct{})}
	if !s.cluster.startWork() {
		o.err = tasks.ErrClosed
		close(o.done)
		return nil, o
	}
	s.opening = o
	go func() {
		defer s.cluster.running.Done()
		engine, err := s.readAll()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.engine, s.opening = engine, nil
		o.engine, o.err = engine, err
		close(o.done)
	}()
	return nil, o
}

// readAll opens the stream and reads what is there.
func (s *storedTasks) readAll() (*taskengine.Engine, error) {
	c := s.cluster
	ctx, cancel := context.WithTimeout(c.ctx, openTimeout)
	defer cancel()
	stream, err := c.openStream(ctx, jetstream.StreamConfig{
		Name: c.streamName("tasks"), Subjects: []string{c.subject("task.*")}, Description: "tasks of clients",
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowMsgTTL: true, MaxBytes: maxTaskBytes,
	})
	if err != nil {
		return nil, c.explain(err)
	}
	engine, err := awaitStream(ctx, func() (*taskengine.Engine, error) {
		return taskengine.OpenStream(ctx, c.js, stream, taskengine.Options{Subject: c.subject("task."), Runner: c.id, IsGone: c.isGoneMember, IsShared: true})
	})
	if err != nil {
		return nil, c.explain(err)
	}
	return engine, nil
}

// Create implements [tasks.Store].
func (s *storedTasks) Create(ctx context.Context, r *tasks.Record, most int) error {
	e, err := s.open(ctx)
	if err != nil {
		return err
	}
	if err := s.cluster.holdLease(ctx); err != nil {
		return storeError(err)
	}
	return s.cluster.noteStore("tasks", storeError(e.Create(ctx, r, most)))
}

// Load implements [tasks.Store].
func (s *storedTasks) Load(ctx context.Context, id string) (*tasks.Record, error) {
	e, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := e.Load(ctx, id)
	return r, storeError(err)
}

// Replace implements [tasks.Store].
func (s *storedTasks) Replace(ctx context.Context, next *tasks.Record) error {
	e, err := s.open(ctx)
	if err != nil {
		return err
	}
	if err := s.cluster.holdLease(ctx); err != nil {
		return storeError(err)
	}
	return s.cluster.noteStore("tasks", storeError(e.Replace(ctx, next)))
}

// List implements [tasks.Store].
func (s *storedTasks) List(ctx context.Context, owner string) ([]*tasks.Record, error) {
	e, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := e.List(ctx, owner)
	return all, storeError(err)
}

// ListTool implements [tasks.Store].
func (s *storedTasks) ListTool(ctx context.Context, tool string) ([]*tasks.Record, error) {
	e, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := e.ListTool(ctx, tool)
	return all, storeError(err)
}

// Runner implements [tasks.Store].
func (s *storedTasks) Runner() string { return s.cluster.id }

// IsGone implements [tasks.Store].
func (s *storedTasks) IsGone(runner string) bool {
	return runner == tasks.NoRunner || s.cluster.isGoneMember(runner)
}

// Prepare implements [tasks.Store].
func (s *storedTasks) Prepare() error {
	_, err := s.open(context.Background())
	return err
}

// Close implements [tasks.Store]. The cluster stays open.
func (s *storedTasks) Close() error { return nil }
