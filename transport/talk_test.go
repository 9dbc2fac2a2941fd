package transport_test

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// talk is play for clients that break the protocol in ways that a checker cannot follow: what is expected is compared, and
// only what the server sends is checked. Here @lenient is for its lines.
func talk(t *testing.T, h mcp.Handler, opts transport.ServerOptions, script string) {
	t.Helper()
	opts.Logger = quiet
	synctest.Test(t, func(t *testing.T) {
		opts.Tap = mcptest.ServerSentTap(t, lenient(script))
		if w, ok := h.(*world); ok {
			w.gate = make(chan struct{})
		}
		near, far := memory.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- transport.Serve(context.Background(), far, h, opts) }()
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
			checks = append(checks, strings.Fields(names)...)
		}
	}
	return mcptest.WithoutServerChecks(checks...)
}

func talkAll(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { talk(t, newWorld(), r.opts, r.script) })
	}
}

func expect(t *testing.T, got chan []byte, want string) {
	t.Helper()
	select {
	case frame := <-got:
		if !matches(want, frame) {
			t.Errorf("expected %s\ngot      %s", want, frame)
		}
	default:
		t.Errorf("expected, and not sent: %s", want)
	}
}

var anything = regexp.MustCompile(`^\$\{.*\}$`)

// matches compares a frame as JSON with one in which "${name}" stands for anything.
func matches(want string, frame []byte) bool {
	var a, b any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal(frame, &b) != nil {
		return false
	}
	return like(a, b)
}

func like(want, got any) bool {
	switch want := want.(type) {
	case string:
		return anything.MatchString(want) || want == got
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for k, v := range want {
			if other, ok := got[k]; !ok || !like(v, other) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for i := range want {
			if !like(want[i], got[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}
