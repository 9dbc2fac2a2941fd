package memstore_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
)

func appended(t *testing.T, s *memstore.Events, stream, data string) string {
	t.Helper()
	var raw []byte
	if data != "" {
		raw = []byte(data)
	}
	id, err := s.Append(t.Context(), stream, raw)
	if err != nil {
		t.Fatal(err)
	}
	if of, ok := s.Stream(id); !ok || of != stream {
		t.Errorf("%s is of the stream %q", id, of)
	}
	return id
}

func behind(t *testing.T, s *memstore.Events, id string) (data string) {
	t.Helper()
	events, err := s.After(t.Context(), id)
	if err != nil {
		return err.Error()
	}
	for _, d := range events {
		data += string(d)
	}
	return data
}

func TestEvents(t *testing.T) {
	s := memstore.NewEvents(memstore.EventLimits{})
	primed := appended(t, s, "a_b", "")
	one := appended(t, s, "a_b", "1")
	appended(t, s, "other", "x")
	appended(t, s, "a_b", "")
	two := appended(t, s, "a_b", "2")
	for id, want := range map[string]string{
		primed: "12", one: "2", two: "", two + "0": memstore.ErrEventGone.Error(), "a_b_": memstore.ErrEventGone.Error(),
		"x": memstore.ErrEventGone.Error(), "": memstore.ErrEventGone.Error(), "none_1": memstore.ErrEventGone.Error(),
	} {
		if got := behind(t, s, id); got != want {
			t.Errorf("behind %q: %q, want %q", id, got, want)
		}
	}
}

func TestEventsOfOthers(t *testing.T) {
	s := memstore.NewEvents(memstore.EventLimits{})
	primed := appended(t, s, "quiet", "")
	appended(t, s, "quiet", "x")
	for range 200_000 {
		appended(t, s, "busy", "y")
	}
	if got := behind(t, s, primed); got != "x" {
		t.Errorf("a stream that sends much, and keeps little of it, has cost another its events: %s", got)
	}
}

func TestEventsLetGo(t *testing.T) {
	s := memstore.NewEvents(memstore.EventLimits{MaxBytes: 4 << 10})
	data := new([1 << 10]byte)
	weakly := weak.Make(data)
	for _, d := range [][]byte{data[:], make([]byte, 1<<10), make([]byte, 1<<10), make([]byte, 1<<10)} {
		if _, err := s.Append(t.Context(), "s", d); err != nil {
			t.Fatal(err)
		}
	}
	if data = nil; weakly.Value() == nil {
		t.Fatal("it went before it was forgotten")
	}
	runtime.GC()
	if weakly.Value() != nil {
		t.Error("what was forgotten is still in memory")
	}
	runtime.KeepAlive(s)
}

func TestEventNumbersDoNotComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		s := memstore.NewEvents(memstore.EventLimits{MaxBytes: 1})
		seen := map[string]bool{}
		for range 3 {
			id := appended(t, s, "s", "too large")
			if seen[id] {
				t.Errorf("%s came again", id)
			}
			seen[id] = true
		}
	})
}

func TestEventOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.NewEvents(memstore.EventLimits{MaxEvents: 2, MaxAge: time.Minute})
		first := appended(t, s, "s", "1")
		appended(t, s, "s", "2")
		third := appended(t, s, "s", "3")
		if got := behind(t, s, first); got != "23" { // it is gone itself, and nothing behind it is
			t.Errorf("behind the first: %s", got)
		}
		appended(t, s, "s", "4")
		if got := behind(t, s, first); got != memstore.ErrEventGone.Error() {
			t.Errorf("behind the first, without the second: %s", got)
		}
		time.Sleep(time.Minute + 1)
		if got := behind(t, s, third); got != memstore.ErrEventGone.Error() { // though nothing came since
			t.Errorf("behind an old event: %s", got)
		}
	})
}

func TestEventsBesideEachOther(t *testing.T) {
	s := memstore.NewEvents(memstore.EventLimits{MaxBytes: 8 << 10, MaxEvents: 8})
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			stream := string(rune('a' + i))
			for range 500 {
				id, err := s.Append(t.Context(), stream, []byte(stream))
				if err != nil {
					t.Error(err)
				}
				events, err := s.After(t.Context(), id)
				if err != nil {
					if !errors.Is(err, memstore.ErrEventGone) {
						t.Errorf("behind the last of %s: %v", stream, err)
					}
					continue
				}
				for id := range events {
					t.Errorf("behind the last of %s: %s", stream, id)
				}
			}
		})
	}
	work.Wait()
}

func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.NewEvents(memstore.EventLimits{})
		first := appended(t, s, "s", "first")
		for range 1023 {
			appended(t, s, "s", "x")
		}
		if got := behind(t, s, first); len(got) != 1023 {
			t.Errorf("%d events behind the first", len(got))
		}
		second := appended(t, s, "s", "x")
		appended(t, s, "s", "x")
		if _, err := s.After(t.Context(), first); !errors.Is(err, memstore.ErrEventGone) {
			t.Errorf("an event that was dropped: %v", err)
		}
		big := string(make([]byte, 9<<20))
		large := appended(t, s, "big", big)
		appended(t, s, "bigger", big)
		if _, err := s.After(t.Context(), second); !errors.Is(err, memstore.ErrEventGone) {
			t.Errorf("the bytes of all streams: %v", err)
		}
		if _, err := s.After(t.Context(), large); !errors.Is(err, memstore.ErrEventGone) {
			t.Errorf("the bytes of large events: %v", err)
		}
		old := appended(t, s, "old", "1")
		time.Sleep(11 * time.Minute)
		appended(t, s, "new", "1")
		if _, err := s.After(t.Context(), old); !errors.Is(err, memstore.ErrEventGone) {
			t.Errorf("an old event: %v", err)
		}
	})
}
