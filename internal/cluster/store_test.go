package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A record that one replica has saved is what another loads at once. Nothing replaces a final one.
func TestSessionRecords(t *testing.T) {
	one, two := openTwo(t)
	until := time.Now().Add(time.Hour)
	if record, err := two.Load(t.Context(), "k"); record != nil || err != nil {
		t.Fatalf("an unknown session: %s, %v", record, err)
	}
	for _, value := range []string{"a", "b", "c"} {
		if err := one.Save(t.Context(), "k", []byte(value), false, until); err != nil {
			t.Fatal(err)
		}
		if record, err := two.Load(t.Context(), "k"); string(record) != value || err != nil {
			t.Errorf("got %s, %v, want %s", record, err, value)
		}
	}
	var saving sync.WaitGroup
	for range 4 {
		saving.Go(func() {
			if err := one.Save(t.Context(), "k", []byte("late"), false, until); err != nil {
				t.Error(err)
			}
		})
	}
	if err := two.Save(t.Context(), "k", []byte("end"), true, until); err != nil {
		t.Error(err)
	}
	saving.Wait()
	if err := one.Save(t.Context(), "k", []byte("later"), false, until); err != nil {
		t.Error(err)
	}
	if record, err := one.Load(t.Context(), "k"); string(record) != "end" || err != nil {
		t.Errorf("after the end: %s, %v", record, err)
	}
}

// Of two replicas that change a record at the same time, none loses the change of the other. A
// final record stays.
func TestSessionRecordsAtOnce(t *testing.T) {
	one, two := openTwo(t)
	until := time.Now().Add(time.Hour)
	add := func(text string, meanwhile func()) func([]byte) ([]byte, bool, error) {
		return func(record []byte) ([]byte, bool, error) {
			if meanwhile != nil {
				meanwhile()
				meanwhile = nil
			}
			return append(bytes.Clone(record), text...), false, nil
		}
	}
	err := one.Update(t.Context(), "k", until, add("a", func() {
		if err := two.Update(t.Context(), "k", until, add("b", nil)); err != nil {
			t.Error(err)
		}
	}))
	if record, _ := one.Load(t.Context(), "k"); err != nil || string(record) != "ba" {
		t.Errorf("%s, %v", record, err)
	}
	refused := errors.New("no")
	if err := one.Update(t.Context(), "k", until, func([]byte) ([]byte, bool, error) { return nil, false, refused }); err != refused {
		t.Errorf("the error of the change: %v", err)
	}
	err = one.Update(t.Context(), "k", until, add("c", func() {
		if err := two.Save(t.Context(), "k", []byte("end"), true, until); err != nil {
			t.Error(err)
		}
	}))
	if record, _ := one.Load(t.Context(), "k"); err != nil || string(record) != "end" {
		t.Errorf("after the end: %s, %v", record, err)
	}
}

// after returns the data of the events after the one with an id.
func after(t *testing.T, s streamable.EventStore, id string) (all []string) {
	t.Helper()
	events, err := s.After(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for id, data := range events {
		if _, ok := s.Stream(id); !ok {
			t.Errorf("the id %q names no stream", id)
		}
		all = append(all, string(data))
	}
	return all
}

// What one replica appends, another finds, in order and each event once.
func TestEvents(t *testing.T) {
	one, two := openTwo(t)
	add := func(s streamable.EventStore, stream string, data []byte) string {
		t.Helper()
		id, err := s.Append(t.Context(), stream, data)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	changed := make(chan struct{}, 10)
	stop, err := two.Watch("KEY.inst-1", func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	first := add(one, "KEY.inst-1", nil)
	add(one, "KEY~inst-2", []byte("other"))
	add(one, "KEY.inst-1", []byte("a"))
	b := add(two, "KEY.inst-1", []byte("b"))
	add(one, "KEY.inst-1", nil)
	add(one, "KEY.inst-1", []byte("c"))
	for range 2 {
		<-changed
	}
	if got := after(t, two, first); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("after the first: %q", got)
	}
	if got := after(t, one, b); !slices.Equal(got, []string{"c"}) {
		t.Errorf("after b: %q", got)
	}
	if stream, ok := two.Stream(first); stream != "KEY.inst-1" || !ok {
		t.Errorf("the stream of %s: %s, %v", first, stream, ok)
	}
	for _, id := range []string{"KEY.inst-1_zzz", "KEY~inst-2" + first[len("KEY.inst-1"):], "KEY.>_1", "x"} {
		if _, err := one.After(t.Context(), id); !errors.Is(err, streamable.ErrEventGone) {
			t.Errorf("after %q: %v", id, err)
		}
	}
	if _, err := one.Append(t.Context(), "big", make([]byte, 2<<20)); err == nil {
		t.Error("an event above max_payload was accepted")
	}
}

// A message reaches its instance and the answer comes back. For one that has ended, Send fails at
// once.
func TestSend(t *testing.T) {
	one, two := openTwo(t)
	heard := make(chan string, 10)
	stop, err := one.Receive("inst", func(_ context.Context, m []byte) ([]byte, error) {
		heard <- string(m)
		if string(m) == "bad" {
			return nil, errors.New("not this one")
		}
		return append([]byte("answer to "), m...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := two.Send(t.Context(), "inst", []byte("x")); string(answer) != "answer to x" || err != nil {
		t.Errorf("%s, %v", answer, err)
	}
	if _, err := two.Send(t.Context(), "inst", []byte("bad")); err == nil || err.Error() != "not this one" {
		t.Errorf("the handler's error: %v", err)
	}
	if err := two.SendAll([]byte("all")); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"x", "bad", "all"} {
		if got := <-heard; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	stop()
	if _, err := two.Send(t.Context(), "inst", nil); !errors.Is(err, replica.ErrGone) {
		t.Errorf("after the end: %v", err)
	}
}

// A receiver that hangs holds no sender, also if the sender's own limit is far away.
func TestSendToHangingReplica(t *testing.T) {
	one, two := openTwo(t)
	release := make(chan struct{})
	stop, err := one.Receive("inst", func(context.Context, []byte) ([]byte, error) {
		<-release
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if _, err := two.Send(ctx, "inst", []byte("x")); !errors.Is(err, replica.ErrUnreachable) || ctx.Err() != nil {
		t.Error(err)
	}
}
