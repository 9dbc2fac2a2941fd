package streamable_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/transport/streamable"
)

func appended(t *testing.T, s streamable.EventStore, stream, data string) string {
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

func behind(t *testing.T, s streamable.EventStore, id string) (data string) {
	t.Helper()
	events, err := s.After(t.Context(), id)
	if err != nil {
		return err.Error()
	}
	for _, e := range events {
		data += string(e.Data)
	}
	return data
}

func TestEvents(t *testing.T) {
	s := streamable.NewMemoryEvents()
	primed := appended(t, s, "a_b", "")
	one := appended(t, s, "a_b", "1")
	appended(t, s, "other", "x")
	appended(t, s, "a_b", "")
	two := appended(t, s, "a_b", "2")
	for id, want := range map[string]string{
		primed: "12", one: "2", two: "", two + "0": streamable.ErrEventGone.Error(), "a_b_": streamable.ErrEventGone.Error(),
		"x": streamable.ErrEventGone.Error(), "": streamable.ErrEventGone.Error(), "none_1": streamable.ErrEventGone.Error(),
	} {
		if got := behind(t, s, id); got != want {
			t.Errorf("behind %q: %q, want %q", id, got, want)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := streamable.NewMemoryEvents()
		first := appended(t, s, "s", "first")
		for range 1023 {
			appended(t, s, "s", "x")
		}
		if got := behind(t, s, first); len(got) != 1023 {
			t.Errorf("%d events behind the first", len(got))
		}
		second := appended(t, s, "s", "x")
		appended(t, s, "s", "x")
		if _, err := s.After(t.Context(), first); !errors.Is(err, streamable.ErrEventGone) {
			t.Errorf("an event that was dropped: %v", err)
		}
		big := string(make([]byte, 9<<20))
		large := appended(t, s, "big", big)
		appended(t, s, "bigger", big)
		if _, err := s.After(t.Context(), second); !errors.Is(err, streamable.ErrEventGone) {
			t.Errorf("the bytes of all streams: %v", err)
		}
		if _, err := s.After(t.Context(), large); !errors.Is(err, streamable.ErrEventGone) {
			t.Errorf("the bytes of large events: %v", err)
		}
		old := appended(t, s, "old", "1")
		time.Sleep(11 * time.Minute)
		appended(t, s, "new", "1")
		if _, err := s.After(t.Context(), old); !errors.Is(err, streamable.ErrEventGone) {
			t.Errorf("an old event: %v", err)
		}
	})
}
