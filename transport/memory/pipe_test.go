package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func TestPipe(t *testing.T) {
	a, b := memory.Pipe()
	for _, way := range []struct{ from, to transport.Conn }{{a, b}, {b, a}} {
		for i := range 3 {
			if err := way.from.Write(fmt.Appendf(nil, "%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if frame, err := way.to.Read(); err != nil || string(frame) != fmt.Sprint(i) {
				t.Errorf("read %q, %v", frame, err)
			}
		}
	}
	if _, half := a.(transport.HalfOpener); half {
		t.Error("a pipe in memory is closed as a whole")
	}
}

// Frames written before the end can still be read, at both ends.
func TestPipeCloses(t *testing.T) {
	for name, closing := range map[string]func(a, b transport.Conn) error{
		"one end": func(a, _ transport.Conn) error { return a.Close() }, "the other end": func(_, b transport.Conn) error { return b.Close() },
		"both ends, twice": func(a, b transport.Conn) error { return errors.Join(a.Close(), b.Close(), a.Close(), b.Close()) },
	} {
		a, b := memory.Pipe()
		_ = a.Write([]byte("to b"))
		_ = b.Write([]byte("to a"))
		if err := closing(a, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for want, end := range map[string]transport.Conn{"to a": a, "to b": b} {
			if frame, err := end.Read(); err != nil || string(frame) != want {
				t.Errorf("%s: read %q, %v", name, frame, err)
			}
			for range 2 {
				if frame, err := end.Read(); err != io.EOF {
					t.Errorf("%s: read %q, %v", name, frame, err)
				}
			}
			if err := end.Write([]byte("x")); !errors.Is(err, mcp.ErrClosed) {
				t.Errorf("%s: write: %v", name, err)
			}
		}
	}
}

// Close wakes who reads and who waits for room.
func TestPipeCloseWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memory.Pipe()
		read, wrote := make(chan error, 1), make(chan error, 1)
		go func() { _, err := a.Read(); read <- err }()
		n := 0
		go func() {
			for {
				if err := a.Write([]byte("x")); err != nil {
					wrote <- err
					return
				}
				n++
			}
		}()
		synctest.Wait()
		if n == 0 || len(read) != 0 || len(wrote) != 0 {
			t.Errorf("%d frames were written", n)
		}
		b.Close()
		if err := <-read; err != io.EOF {
			t.Errorf("Read: %v", err)
		}
		if err := <-wrote; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("Write: %v", err)
		}
		for range n {
			if frame, err := b.Read(); err != nil || string(frame) != "x" {
				t.Fatalf("read %q, %v", frame, err)
			}
		}
		if _, err := b.Read(); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
	})
}

func TestPipeUnderRace(t *testing.T) {
	a, b := memory.Pipe()
	const writers, each = 8, 500
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := a.Write(fmt.Appendf(nil, "%d %d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := map[int]int{}
	for range writers * each {
		frame, err := b.Read()
		if err != nil {
			t.Fatal(err)
		}
		var w, i int
		fmt.Sscan(string(frame), &w, &i)
		if next[w] != i {
			t.Fatalf("writer %d: %d, want %d", w, i, next[w])
		}
		next[w]++
	}
	wg.Wait()
}

// A dial that fails leaves nothing behind; each dial has a connection of its own.
func TestDialer(t *testing.T) {
	d := memory.Dialer(mcp.HandlerFunc(fixture), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t)},
		transport.ServerOptions{Revisions: []mcp.Revision{mcp.LatestRevision}})
	if _, err := d.Dial(t.Context(), newInbound(), transport.ClientOptions{Revision: mcp.Revision20250618, Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())}); err == nil || !strings.Contains(err.Error(), "Unsupported protocol version") {
		t.Errorf("a revision that is not spoken: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	one, err := d.Dial(ctx, newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if err != nil {
		t.Fatal(err)
	}
	cancel() // bounds the dial only
	two, err := d.Dial(t.Context(), newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := call(t.Context(), one, "echo", nil); err != nil {
		t.Error(err)
	}
	if err := errors.Join(one.Close(), one.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := call(t.Context(), two, "echo", nil); err != nil {
		t.Error(err)
	}
	if _, _, err := call(t.Context(), one, "echo", nil); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("a closed transport: %v", err)
	}
	if err := two.(mcp.Notifier).Notify(t.Context(), mcp.Notification{Method: mcp.NotificationRootsChanged}); err != nil {
		t.Error(err)
	}
	two.Close()
	if _, err := d.Dial(ctx, newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// Clients and servers in every revision, with every message checked on both sides.
func TestManyCallsAtOnce(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		in := newInbound()
		c, err := memory.Dialer(mcp.HandlerFunc(fixture), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t)}).Dial(t.Context(), in,
			transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientTap(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 12 {
					name, notify := "echo", func(mcp.Notification) {}
					if i%3 == 0 {
						name = "progress"
					}
					if text, _, err := call(t.Context(), c, name, notify); err != nil || text == "" {
						t.Errorf("%q, %v", text, err)
					}
				}
			})
		}
		wg.Wait()
	})
}
