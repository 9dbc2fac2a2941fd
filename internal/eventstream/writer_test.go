package eventstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEncode(t *testing.T) {
	for _, tt := range []struct {
		e    Event
		want string
	}{
		{Event{Data: []byte("a")}, "data: a\n\n"},
		{Event{}, "data: \n\n"},
		{Event{Name: "message", ID: "1", HasID: true, Data: []byte("a"), Retry: 1500 * time.Millisecond}, "event: message\nid: 1\nretry: 1500\ndata: a\n\n"},
		{Event{ID: "1"}, "data: \n\n"},
		{Event{HasID: true}, "id: \ndata: \n\n"},
		{Event{ID: "1", HasID: true, Retry: 1}, "id: 1\nretry: 0\ndata: \n\n"},
		{Event{Retry: time.Second}, "retry: 1000\n\n"},
		{Event{Data: []byte("a\nb\r\nc\rd\n\ne\r\n")}, "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\ndata: \n\n"},
		{Event{Name: "a\ndata: x", ID: "1\r\n\x002", HasID: true, Data: []byte("a")}, "event: adata: x\nid: 12\ndata: a\n\n"},
	} {
		if got := string(Encode(tt.e)); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.e, got, tt.want)
		}
	}
}

func TestWriter(t *testing.T) {
	f := newFake()
	w := NewWriter(f, WriterOptions{})
	if f.status != 0 || len(f.header) != 0 {
		t.Error("NewWriter has begun the response")
	}
	for range 2 {
		if err := w.Open(); err != nil {
			t.Fatal(err)
		}
	}
	want := opening
	if f.text() != want || f.status != 200 || f.header.Get("Content-Type") != "text/event-stream" || f.header.Get("Cache-Control") != "no-store, no-transform" || f.header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%q %d %v", f.text(), f.status, f.header)
	}
	if len(f.deadline) != 1 || !f.deadline[0].IsZero() {
		t.Errorf("the server's write deadline was not cleared: %v", f.deadline)
	}
	for i, send := range []func(Event) error{w.Send, func(e Event) error { return w.SendEncoded(Encode(e)) }} {
		if err := send(Event{Data: fmt.Appendf(nil, "%d", i)}); err != nil {
			t.Fatal(err)
		}
		if want += fmt.Sprintf("data: %d\n\n", i); f.text() != want {
			t.Errorf("%q, want %q", f.text(), want)
		}
	}
	large := strings.Repeat("x", 1<<20)
	for _, e := range []Event{{Data: []byte(large)}, {HasID: true, Data: []byte(large + "\n" + large)}} {
		if err := w.Send(e); err != nil {
			t.Fatal(err)
		}
		if want += string(Encode(e)); f.text() != want {
			t.Error("a large event is not what was sent")
		}
	}
	select {
	case <-w.Done():
		t.Error("Done before Close")
	default:
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	f.close()
	<-w.Done()
	if err := w.Send(Event{}); !errors.Is(err, ErrClosed) || w.TrySend(Event{}) || w.TrySendEncoded([]byte("x")) || !errors.Is(w.SendEncoded(nil), ErrClosed) || !errors.Is(w.Open(), ErrClosed) || !errors.Is(w.Err(), ErrClosed) {
		t.Error("a closed stream takes events:", err)
	}
	w.CutOff(errors.New("too late"))
	if f.text() != want || f.misused() != "" || len(f.deadline) != 1 {
		t.Error(f.misused())
	}
}

// Send and TrySend open the stream: the event is data enough.
func TestWriterOpensByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, send := range map[string]func(*Writer) bool{
			"Send":    func(w *Writer) bool { return w.Send(Event{Data: []byte("a")}) == nil },
			"TrySend": func(w *Writer) bool { return w.TrySend(Event{Data: []byte("a")}) },
		} {
			f := newFake()
			w := NewWriter(f, WriterOptions{})
			if !send(w) {
				t.Error(name, w.Err())
			}
			synctest.Wait()
			if f.text() != "data: a\n\n" || f.status != 200 {
				t.Errorf("%s: %q %d", name, f.text(), f.status)
			}
			_ = w.Open()
			_ = w.Close()
			if f.text() != "data: a\n\n" {
				t.Errorf("%s: %q", name, f.text())
			}
		}
	})
}

// If the stream was never opened, the caller must be able to send another answer.
func TestWriterUnused(t *testing.T) {
	f := newFake()
	if err := NewWriter(f, WriterOptions{}).Close(); err != nil || f.status != 0 || len(f.deadline) != 0 {
		t.Error(err, f.status, f.deadline)
	}
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{KeepAlive: 10 * time.Second, WriteTimeout: 7 * time.Second})
		_ = w.Open()
		want := opening
		step := func(wait time.Duration, more string) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if want += more; f.text() != want {
				t.Fatalf("after %v: %q, want %q", wait, f.text(), want)
			}
		}
		step(9999*time.Millisecond, "")
		step(time.Millisecond, keepAlive)
		step(10*time.Second, keepAlive)
		step(6*time.Second, "")
		_ = w.Send(Event{Data: []byte("a")})
		step(9999*time.Millisecond, "data: a\n\n")
		step(time.Millisecond, keepAlive)
		step(time.Minute, strings.Repeat(keepAlive, 6))
		_ = w.Close()
		step(time.Minute, "")
	})
}

func TestNoKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{KeepAlive: -1, WriteTimeout: time.Second})
		_ = w.Open()
		time.Sleep(time.Hour)
		if f.text() != opening {
			t.Errorf("%q", f.text())
		}
		f.stop() // and nothing may wait without bound
		began := time.Now()
		if err := w.Send(Event{}); !errors.Is(err, ErrCutOff) || time.Since(began) != time.Second {
			t.Error(err, time.Since(began))
		}
		_ = w.Close()
	})
}

func TestWriteFails(t *testing.T) {
	f := newFake()
	w := NewWriter(f, WriterOptions{})
	_ = w.Open()
	f.dead = true
	err := w.Send(Event{})
	if err == nil || errors.Is(err, ErrCutOff) {
		t.Error(err)
	}
	<-w.Done()
	if again := w.Close(); again != err {
		t.Error(again)
	}
}

// A response that cannot flush cannot be a stream.
func TestNoFlush(t *testing.T) {
	w := NewWriter(struct{ http.ResponseWriter }{httptest.NewRecorder()}, WriterOptions{})
	if err := w.Open(); !errors.Is(err, http.ErrNotSupported) {
		t.Error(err)
	}
	_ = w.Close()
}

// The events of each sender must arrive in order. The response must be used by one goroutine at a
// time, and never after Close.
func TestManySenders(t *testing.T) {
	f := newFake()
	w := NewWriter(f, WriterOptions{KeepAlive: time.Microsecond})
	var wg sync.WaitGroup
	const senders, each = 8, 500
	for i := range senders {
		wg.Go(func() {
			for n := range each {
				e := Event{Data: fmt.Appendf(nil, "%d %d", i, n)}
				if n%7 == 0 {
					e.Data = append(e.Data, strings.Repeat(" ", 20<<10)...)
				}
				switch {
				case n%3 == 0 && w.TrySend(e):
				case w.Send(e) != nil:
					t.Error(w.Err())
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	f.close()
	r := NewReader(strings.NewReader(f.text()), 0)
	var next [senders]int
	for range senders * each {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		var i, n int
		if _, err := fmt.Sscan(string(e.Data), &i, &n); err != nil || next[i] != n {
			t.Fatalf("%.20q, want number %d of %d: %v", e.Data, next[i], i, err)
		}
		next[i]++
	}
	if f.misused() != "" {
		t.Error(f.misused())
	}
}

// If senders and Close run at the same time, an event is written exactly if it was not refused.
func TestCloseAmongSenders(t *testing.T) {
	for range 200 {
		f := newFake()
		w := NewWriter(f, WriterOptions{KeepAlive: 50 * time.Microsecond})
		var wg sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					if n%2 == 0 && !w.TrySend(Event{Data: []byte("a")}) || n%2 == 1 && w.Send(Event{Data: []byte("a")}) != nil {
						return
					}
					mu.Lock()
					taken++
					mu.Unlock()
				}
			})
		}
		time.Sleep(100 * time.Microsecond)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		f.close()
		wg.Wait()
		if got := strings.Count(f.text(), "data: a\n\n"); got != taken || f.misused() != "" {
			t.Fatalf("%d events, %d were taken; %s", got, taken, f.misused())
		}
	}
}

// If the timer fires during a flush, the next comment may be late by at most KeepAlive.
func TestKeepAliveAfterAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{KeepAlive: 10 * time.Second})
		_ = w.Open()
		time.Sleep(9 * time.Second)
		f.stop()
		go func() { _ = w.Send(Event{Data: []byte("a")}) }()
		time.Sleep(2 * time.Second)
		f.resume()
		time.Sleep(18 * time.Second)
		synctest.Wait()
		if want := opening + "data: a\n\n" + keepAlive; f.text() != want {
			t.Errorf("%q, want %q", f.text(), want)
		}
		_ = w.Close()
	})
}

// OnDeath must call its function once if the stream fails, also if it has failed before, but not
// after Close.
func TestOnDeath(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(f *fake, w *Writer)
		told int
	}{
		"lives":   {func(*fake, *Writer) {}, 0},
		"closed":  {func(_ *fake, w *Writer) { _ = w.Close() }, 0},
		"ended":   {func(_ *fake, w *Writer) { _ = w.End(Event{Data: []byte("x")}) }, 0},
		"cut off": {func(_ *fake, w *Writer) { w.CutOff(errors.New("slow")) }, 1},
		"a failure": {func(f *fake, w *Writer) {
			_ = f.SetWriteDeadline(time.Unix(1, 0))
			_ = w.Send(Event{Data: []byte("x")})
		}, 1},
		"twice":        {func(_ *fake, w *Writer) { w.CutOff(errors.New("slow")); w.CutOff(errors.New("slower")) }, 1},
		"an early end": {func(_ *fake, w *Writer) { _ = w.Close(); w.CutOff(errors.New("slow")) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, asks := range []string{"before", "after"} {
					f := newFake()
					w := NewWriter(f, WriterOptions{KeepAlive: -1})
					_ = w.Open()
					var told atomic.Int32
					ask := func() { w.OnDeath(func() { _ = w.Err(); told.Add(1) }) } // on a goroutine that may use the stream
					if asks == "before" {
						ask()
					}
					test.do(f, w)
					if asks == "after" {
						ask()
					}
					synctest.Wait()
					if n := int(told.Load()); n != test.told {
						t.Errorf("asked %s: told %d times, want %d", asks, n, test.told)
					}
					_ = w.Close()
				}
			})
		})
	}
}
