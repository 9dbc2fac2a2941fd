package eventstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{KeepAlive: 4 * time.Second, WriteTimeout: 10 * time.Second, MaxQueue: 100})
		_ = w.Open()
		f.stop()
		data := []byte(strings.Repeat("x", 42)) // 50 bytes as an event
		began := time.Now()
		if !w.TrySend(Event{Data: data}) {
			t.Fatal("an open stream takes nothing")
		}
		synctest.Wait() // it is being written
		took := 0
		for w.TrySend(Event{Data: data}) || w.TrySendEncoded(Encode(Event{Data: data})) {
			took++
		}
		if took != 2 {
			t.Errorf("%d events of 50 bytes wait, the queue holds 100", took)
		}
		if time.Since(began) != 0 {
			t.Error("TrySend waited")
		}
		waited := make(chan error)
		go func() { waited <- w.Send(Event{Data: data}) }()
		time.Sleep(3 * time.Second)
		select {
		case err := <-waited:
			t.Fatal("Send did not wait for room:", err)
		default:
		}
		f.resume()
		if err := <-waited; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if want := opening + strings.Repeat("data: "+string(data)+"\n\n", 4); f.text() != want {
			t.Errorf("%q, want %q", f.text(), want)
		}
		f.stop()
		began = time.Now()
		if err := w.Send(Event{Data: data}); !errors.Is(err, ErrCutOff) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		<-w.Done()
		if err := w.Close(); !errors.Is(err, ErrCutOff) || !errors.Is(w.Send(Event{}), ErrCutOff) {
			t.Error(err)
		}
		f.close()
		if f.misused() != "" {
			t.Error(f.misused())
		}
	})
}

// An event that is larger than the queue must be accepted if nothing waits.
func TestLargerThanTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{MaxQueue: 10})
		large := Event{Data: []byte(strings.Repeat("x", 1000))}
		f.stop()
		if !w.TrySend(large) {
			t.Error("the first was refused")
		}
		synctest.Wait()
		if !w.TrySend(large) || w.TrySend(Event{}) {
			t.Error("one may wait, and only one")
		}
		f.resume()
		if err := w.Close(); err != nil || f.text() != strings.Repeat(string(Encode(large)), 2) {
			t.Error(err)
		}
	})
}

// A client that reads a large event slowly must not be cut off.
func TestSlowButReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{WriteTimeout: 10 * time.Second})
		_ = w.Open()
		f.stop()
		sent := make(chan error)
		e := Event{Data: []byte(strings.Repeat("x", 3<<20))}
		go func() { sent <- w.Send(e) }()
		go func() {
			for range 14 { // the head, 12 pieces, the end
				time.Sleep(9 * time.Second)
				f.allow()
			}
		}()
		if err := <-sent; err != nil || f.text() != opening+string(Encode(e)) {
			t.Error(err)
		}
		_ = w.Close()
	})
}

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{WriteTimeout: 10 * time.Second, MaxQueue: 1 << 30})
		_ = w.Open()
		f.stop()
		w.TrySend(Event{})
		time.Sleep(8 * time.Second)
		w.TrySend(Event{Data: make([]byte, 5<<20)})
		began := time.Now()
		go func() { time.Sleep(time.Second); f.allow() }()
		if err := w.Close(); !errors.Is(err, ErrCutOff) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		f.close()
		if f.misused() != "" {
			t.Error(f.misused())
		}
	})
}

func TestCloseSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{})
		_ = w.Open()
		f.stop()
		want := opening
		for i := range 10 {
			e := Event{Data: fmt.Appendf(nil, "%d", i)}
			want += string(Encode(e))
			w.TrySend(e)
		}
		go func() { time.Sleep(5 * time.Second); f.resume() }()
		if err := w.Close(); err != nil || f.text() != want {
			t.Errorf("%v %q", err, f.text())
		}
	})
}

func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w := NewWriter(f, WriterOptions{})
		_ = w.Open()
		f.stop()
		failed := make(chan error)
		go func() { failed <- w.Send(Event{}) }()
		synctest.Wait()
		reason := errors.New("the reason")
		w.CutOff(reason)
		if err := <-failed; !errors.Is(err, ErrCutOff) || !errors.Is(err, reason) {
			t.Error(err)
		}
		if err := w.Close(); !errors.Is(err, reason) {
			t.Error(err)
		}
	})
}
