package eventstream

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var small = Event{Data: []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)}

// discard is a ResponseWriter that drops everything.
type discard struct{ header http.Header }

func (d discard) Header() http.Header              { return d.header }
func (discard) WriteHeader(int)                    {}
func (discard) Write(b []byte) (int, error)        { return len(b), nil }
func (discard) FlushError() error                  { return nil }
func (discard) SetWriteDeadline(t time.Time) error { return nil }

func TestSendAllocations(t *testing.T) {
	w := NewWriter(discard{http.Header{}}, WriterOptions{})
	defer w.Close()
	encoded, large := Encode(small), Event{Data: []byte(strings.Repeat("x", 1<<20))}
	for name, send := range map[string]func() error{
		"Send": func() error { return w.Send(small) }, "SendEncoded": func() error { return w.SendEncoded(encoded) }, "a large Send": func() error { return w.Send(large) },
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := NewReader(&endless{event: Encode(Event{Data: []byte(strings.Repeat("x", size))})}, 0)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSend(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := NewWriter(discard{http.Header{}}, WriterOptions{})
			defer w.Close()
			e := Event{Data: []byte(strings.Repeat("x", size))}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Send(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// open opens n streams to h over one loopback server and counts the events that arrive.
func open(b testing.TB, n int, h http.HandlerFunc) (count *atomic.Int64) {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	transport := &http.Transport{MaxConnsPerHost: n}
	client := &http.Client{Transport: transport}
	var readers sync.WaitGroup
	b.Cleanup(readers.Wait)
	count = new(atomic.Int64)
	for range n {
		res, err := client.Get(s.URL)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { res.Body.Close() })
		readers.Go(func() {
			for lines := bufio.NewReaderSize(res.Body, 256); ; {
				line, err := lines.ReadSlice('\n')
				if err != nil {
					return
				}
				if strings.HasPrefix(string(line), "data:") {
					count.Add(1)
				}
			}
		})
	}
	return count
}

func wait(count *atomic.Int64, n int) {
	for count.Load() < int64(n) {
		runtime.Gosched()
	}
}

const streamsOpen = 1000

// BenchmarkFanOut sends one event to 1,000 open streams and waits until all have it. The baseline
// has a goroutine per stream that writes the events of a channel.
func BenchmarkFanOut(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		var mu sync.Mutex
		var channels []chan []byte
		count := open(b, streamsOpen, func(w http.ResponseWriter, r *http.Request) {
			events := make(chan []byte, 16)
			mu.Lock()
			channels = append(channels, events)
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			for {
				select {
				case e := <-events:
					_, _ = w.Write(e)
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return
				}
			}
		})
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			event := Encode(small)
			for _, events := range channels {
				events <- event
			}
			wait(count, n*streamsOpen)
		}
	})
	b.Run("writer", func(b *testing.B) {
		var mu sync.Mutex
		var writers []*Writer
		count := open(b, streamsOpen, func(w http.ResponseWriter, r *http.Request) {
			stream := NewWriter(w, WriterOptions{})
			defer stream.Close()
			_ = stream.Open()
			mu.Lock()
			writers = append(writers, stream)
			mu.Unlock()
			select {
			case <-r.Context().Done():
			case <-stream.Done():
			}
		})
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			event := Encode(small)
			for _, w := range writers {
				if !w.TrySendEncoded(event) {
					b.Fatal(w.Err())
				}
			}
			wait(count, n*streamsOpen)
		}
	})
}

// An idle stream must cost at most 15 % more memory than an open response of net/http.
func TestIdleStreamMemory(t *testing.T) {
	hold := func(n int, h http.HandlerFunc) uint64 {
		release := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h(w, r)
			<-release
		}))
		defer s.Close()
		defer close(release)
		transport := &http.Transport{}
		client := &http.Client{Transport: transport}
		before := memory()
		for range n {
			res, err := client.Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
		}
		return memory() - before
	}
	const n = 300
	bare := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": open\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	var writers sync.Map
	own := func(w http.ResponseWriter, r *http.Request) {
		stream := NewWriter(w, WriterOptions{})
		_ = stream.Open()
		_ = stream.Send(small)
		writers.Store(stream, nil)
	}
	hold(n, bare) // allocates shared memory
	floor := hold(n, bare)
	got := hold(n, own)
	writers.Range(func(w, _ any) bool { _ = w.(*Writer).Close(); return true })
	t.Logf("an open response holds %d bytes, a stream %d", floor/n, got/n)
	if float64(got) > 1.15*float64(floor) {
		t.Errorf("an idle stream holds %d bytes, an open response %d", got/n, floor/n)
	}
}

// memory returns the size of the heap and the stacks after a collection.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
