package serving_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// talk is like play, for clients that break the protocol in ways that a checker cannot follow. It
// compares the expected lines and checks only the server's frames, to which @lenient applies.
func talk(t *testing.T, h mcp.Handler, opts transport.ServerOptions, script string) {
	t.Helper()
	opts.Logger = quiet
	synctest.Test(t, func(t *testing.T) {
		opts.Tap = mcptest.ServerTap(t, mcptest.SentOnly(), lenient(script))
		if w, ok := h.(*testServer); ok {
			w.gate = make(chan struct{})
		}
		near, far := memory.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- overconn.Serve(context.Background(), far, h, opts) }()
		got := make(chan []byte, 100)
		go func() {
			defer close(got)
			for {
				frame, err := near.Read()
				if err != nil {
					return
				}
				got <- frame
			}
		}()
		for _, line := range strings.Split(expand(script), "\n") {
			switch {
			case strings.HasPrefix(line, "> "):
				if err := near.Write([]byte(line[2:])); err != nil {
					t.Fatal(err)
				}
			case strings.HasPrefix(line, "@wait "):
				d, err := time.ParseDuration(line[6:])
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(d)
			case strings.HasPrefix(line, "< "):
				expect(t, got, line[2:])
				continue
			}
			synctest.Wait()
		}
		near.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for frame := range got {
			t.Errorf("sent, and not expected: %s", frame)
		}
	})
}

func lenient(script string) mcptest.TapOption {
	var checks []string
	for line := range strings.Lines(script) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), "@lenient "); ok {
			for _, name := range strings.Fields(names) {
				checks = append(checks, "server:"+name)
			}
		}
	}
	return mcptest.WithoutChecks(checks...)
}

func talkAll(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { talk(t, newTestServer(), r.opts, r.script) })
	}
}

func expect(t *testing.T, got chan []byte, want string) {
	t.Helper()
	select {
	case frame := <-got:
		if !transporttest.MatchJSON(want, frame) {
			t.Errorf("expected %s\ngot      %s", want, frame)
		}
	default:
		t.Errorf("expected, and not sent: %s", want)
	}
}
