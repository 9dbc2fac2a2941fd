package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/nats-io/nats.go/jetstream"
)

// addTask adds a task to the cluster at a URL.
func addTask(t *testing.T, url string) *cluster.Cluster {
	t.Helper()
	c := open(t, url)
	now := time.Now()
	r := &tasks.Record{ID: "AAAA", Owner: "ann", Tool: "t", Status: tasks.Working, Created: now, Updated: now, TTL: time.Hour}
	if err := c.Tasks().Create(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// Tasks that could not be read completely are read again with the next request. None of them counts
// as known before.
func TestTasksAreReadAgainAfterError(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	url := s.ClientURL()
	_, js := natstest.Connect(t, s)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DOWEL_dowel_tasks", Subjects: []string{"dowel.dowel.task.*"},
		MaxMsgsPerSubject: 1, AllowMsgTTL: true, MaxConsumers: 1})
	if err != nil {
		t.Fatal(err)
	}
	addTask(t, url)
	if _, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "other"}); err != nil { // then the records cannot be read
		t.Fatal(err)
	}
	store := open(t, url).Tasks()
	for range 2 {
		if all, err := store.List(t.Context(), "ann"); err == nil {
			t.Fatalf("the unread tasks are %v", all)
		}
	}
	if err := stream.DeleteConsumer(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if all, err := store.List(t.Context(), "ann"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// While the tasks are read, a request waits no longer than its own limit, and the state can be
// shown.
func TestRequestsDuringReadOfTasks(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t, nil)
	addTask(t, nats.ClientURL())
	between, address := startRelay(t, nats.Addr().String())
	c := open(t, address)
	store := c.Tasks()
	release := between.hold()
	first := make(chan error, 1)
	go func() {
		_, err := store.List(context.WithoutCancel(t.Context()), "ann")
		first <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := store.List(ctx, "ann"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case err := <-first:
		t.Errorf("the request has waited for another one, which has ended with %v", err)
	default:
	}
	release()
	for len(first) == 0 {
		_ = c.State()
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// A list has the tasks that other replicas have made since the list before.
func TestListTasksOfReplicas(t *testing.T) {
	t.Parallel()
	one, two := openTwo(t)
	for n, id := range []string{"AAAA", "BBBB", "CCCC"} {
		now := time.Now()
		r := &tasks.Record{ID: id, Owner: "ann", Tool: "t", Status: tasks.Working, Created: now, Updated: now, TTL: time.Hour}
		if err := one.Tasks().Create(t.Context(), r, 0); err != nil {
			t.Fatal(err)
		}
		list, err := two.Tasks().List(t.Context(), "ann")
		ofTool, failed := two.Tasks().ListTool(t.Context(), "t")
		if err != nil || failed != nil || len(list) != n+1 || len(ofTool) != n+1 {
			t.Errorf("after %d tasks: %d, %v; %d, %v", n+1, len(list), err, len(ofTool), failed)
		}
	}
}
