//go:build unix

package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
)

var discard = slog.New(slog.DiscardHandler)

// inbound remembers what it is told.
type inbound struct {
	mu    sync.Mutex
	downs []error
}

func (in *inbound) ServeMCP(context.Context, *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.MethodNotFound("x")
}
func (in *inbound) Notify(mcp.Notification) {}
func (in *inbound) Down(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.downs = append(in.downs, err)
}

func (in *inbound) down() []error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]error(nil), in.downs...)
}

// legacy is a server as a script: it answers by the method of each line. The cases come first.
func legacy(cases string) string {
	return `echo start >> "$STARTS"
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$1" "$2"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
` + cases + `
  *'"initialize"'*) answer "$id" '"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}';;
  *'"id":'*) answer "$id" '"result":{}';;
  esac
done`
}

const silence = `  *) ;;`

// dialed starts a script, and counts its starts.
func dialed(t *testing.T, script string) (c Command, starts func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "starts")
	c = sh(script)
	c.Env = map[string]string{"STARTS": file}
	c.Grace = 200 * time.Millisecond
	return c, func() int {
		b, _ := os.ReadFile(file)
		return strings.Count(string(b), "start")
	}
}

func TestDial(t *testing.T) {
	for _, tt := range []struct {
		name, cases string
		starts      int
		want        mcp.Revision
		err         []string // parts of the error
	}{
		{"a legacy server", `  *server/discover*) answer "$id" '"error":{"code":-32601,"message":"no"}';;`, 1, mcp.Revision20250618, nil},
		{"it prints before", `  *server/discover*) echo 'Starting up…'; echo '{"level":"info"}'; answer "$id" '"error":{"code":-32601,"message":"no"}';;`, 1, mcp.Revision20250618, nil},
		{"it exits on an unknown method", `  *server/discover*) echo "unknown method" >&2; exit 3;;`, 2, mcp.Revision20250618, nil},
		{"it refuses the method and exits", `  *server/discover*) answer "$id" '"error":{"code":-32600,"message":"expected initialize"}'; exit 0;;`, 2, mcp.Revision20250618, nil},
		{"it dies mid-line", `  *server/discover*) printf '{"jsonrpc":"2.0","id":1,"err'; exit 1;;`, 2, mcp.Revision20250618, nil},
		{"it is killed", `  *server/discover*) kill -KILL $$;;`, 2, mcp.Revision20250618, nil},
		{"it exits on everything", `  *) echo "config missing" >&2; exit 4;;`, 2, "", []string{"exit status 4", "config missing"}},
		{"it exits on initialize", `  *server/discover*) answer "$id" '"error":{"code":-32601,"message":"no"}';; *initialize*) echo "no licence" >&2; exit 5;;`, 2, "", []string{"exit status 5", "no licence"}},
		{"it closes its stdout", `  *server/discover*) exec >&-; sleep 1000;;`, 2, mcp.Revision20250618, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			polltest.NoLeaks(t)
			c, starts := dialed(t, legacy(tt.cases))
			in := &inbound{}
			verdicts := &transport.Verdicts{}
			tr, err := c.Dial(t.Context(), in, transport.ClientOptions{Logger: discard, Verdicts: verdicts, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
			if got := starts(); got != tt.starts {
				t.Errorf("started %d times", got)
			}
			if tt.want == "" {
				for _, part := range tt.err {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("the error is %v, want %q", err, part)
					}
				}
				if got := verdicts.Lookup(c.Endpoint()); got != "" {
					t.Errorf("remembered %s", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
			if err != nil || res.Revision != tt.want {
				t.Errorf("%+v, %v", res, err)
			}
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
			// the next dial knows
			again, err := c.Dial(t.Context(), in, transport.ClientOptions{Logger: discard, Verdicts: verdicts, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
			if err != nil {
				t.Fatal(err)
			}
			again.Close()
			if got := starts(); got != tt.starts+1 {
				t.Errorf("started %d times in all", got)
			}
			if len(in.down()) != 0 {
				t.Errorf("Down was told %v", in.down())
			}
		})
	}
}

var errSilent = errors.New("waited long enough")

func TestDialErrors(t *testing.T) {
	t.Run("no such program", func(t *testing.T) {
		var missing *NotFoundError
		if _, err := (Command{Path: "no-such-program-here"}).Dial(t.Context(), &inbound{}, transport.ClientOptions{Logger: discard, Tap: mcptest.ClientTap(t, mcptest.SentOnly())}); !errors.As(err, &missing) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		polltest.NoLeaks(t)
		c, starts := dialed(t, `echo "waiting for a licence" >&2;`+legacy(silence))
		ctx, cancel := context.WithCancelCause(t.Context())
		c.Stderr = writerFunc(func(p []byte) (int, error) { cancel(errSilent); return len(p), nil }) // it has started
		_, err := c.Dial(ctx, &inbound{}, transport.ClientOptions{Logger: discard, ProbeTimeout: 100 * time.Millisecond, Verdicts: &transport.Verdicts{}, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "waiting for a licence") || starts() != 1 {
			t.Errorf("started %d times, got %v", starts(), err)
		}
	})
	t.Run("pinned to the modern era", func(t *testing.T) {
		c, starts := dialed(t, legacy(`  *server/discover*) exit 3;;`))
		_, err := c.Dial(t.Context(), &inbound{}, transport.ClientOptions{Logger: discard, Revision: mcp.LatestRevision, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		var exit *ExitError
		if !errors.Is(err, transport.ErrProbe) || !errors.As(err, &exit) || exit.ExitCode() != 3 || starts() != 1 {
			t.Errorf("started %d times, got %v", starts(), err)
		}
	})
	t.Run("the context has ended", func(t *testing.T) {
		c, starts := dialed(t, legacy(``))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Dial(ctx, &inbound{}, transport.ClientOptions{Logger: discard, Tap: mcptest.ClientTap(t, mcptest.SentOnly())}); !errors.Is(err, context.Canceled) || starts() != 0 {
			t.Errorf("started %d times, got %v", starts(), err)
		}
	})
}

// The death of a connected server fails its calls with its exit and its last words, and is told
// once.
func TestDeathOfADialedServer(t *testing.T) {
	for name, death := range map[string]string{
		"exit":     `echo "out of memory" >&2; exit 7`,
		"mid-line": `printf '{"jsonrpc":"2.0","id":2,"result":{"to'; echo "out of memory" >&2; exit 7`,
	} {
		t.Run(name, func(t *testing.T) {
			polltest.NoLeaks(t)
			c, _ := dialed(t, legacy(`  *server/discover*) answer "$id" '"error":{"code":-32601,"message":"no"}';;
  *'"name":"die"'*) `+death+`;;
  *tools/call*) printf x >> "$WAITING";;`))
			waiting := filepath.Join(t.TempDir(), "waiting")
			c.Env["WAITING"] = waiting
			in := &inbound{}
			tr, err := c.Dial(t.Context(), in, transport.ClientOptions{Logger: discard, Verdicts: &transport.Verdicts{}, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
			if err != nil {
				t.Fatal(err)
			}
			child := ChildOf(tr)
			if child == nil || child.PID() == 0 {
				t.Fatal("the child is not known")
			}
			failed := make(chan error, 3)
			for range 2 {
				go func() {
					_, err := tr.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"wait"}`)})
					failed <- err
				}()
			}
			polltest.Until(t, "two calls that wait", func() bool { b, _ := os.ReadFile(waiting); return bytes.Count(b, []byte("x")) == 2 })
			go func() {
				_, err := tr.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"die"}`)})
				failed <- err
			}()
			for range 3 {
				err := <-failed
				var exit *ExitError
				if !errors.Is(err, mcp.ErrConnection) || !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.Contains(err.Error(), "out of memory") {
					t.Errorf("failed with %v", err)
				}
			}
			tr.Close()
			if down := in.down(); len(down) != 1 || !strings.Contains(fmt.Sprint(down), "out of memory") {
				t.Errorf("Down was told %v", down)
			}
		})
	}
}

// The test binary serves with Serve, and is dialed in each revision.
func TestDialServe(t *testing.T) {
	for _, r := range mcp.Revisions() {
		t.Run(string(r), func(t *testing.T) {
			polltest.NoLeaks(t)
			in := &inbound{}
			tr, err := server("30s").Dial(t.Context(), in, transport.ClientOptions{Logger: discard, Revision: r, Tap: mcptest.ClientTap(t)})
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.RoundTrip(t.Context(), callNamed("child"))
			if err != nil || res.Revision != r || !strings.Contains(string(res.Raw), "done") {
				t.Errorf("%+v, %v", res, err)
			}
			for _, line := range []string{"printed by a handler\nwritten by a handler\nlogged by a handler\n", "printed by a child\n"} {
				polltest.Until(t, "on stderr: "+line, func() bool { return strings.Contains(ChildOf(tr).StderrTail(9), strings.TrimSpace(line)) })
			}
			if err := tr.Close(); err != nil || len(in.down()) != 0 {
				t.Errorf("%v, %v", err, in.down())
			}
		})
	}
}

func callNamed(name string) *mcp.Request {
	return &mcp.Request{Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":%q}`, name)}
}

func TestEndpoints(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]Command{
		"plain": {Path: "a"}, "args": {Path: "a", Args: []string{"b", "c"}}, "joined": {Path: "a", Args: []string{"b c"}}, "quoted": {Path: "a", Args: []string{`b" "c`}}, "dir": {Path: "a", Dir: "d"}, "other": {Path: "b"}, "empty arg": {Path: "a", Args: []string{""}},
	} {
		if other, taken := seen[c.Endpoint()]; taken {
			t.Errorf("%s and %s are both %s", name, other, c.Endpoint())
		}
		seen[c.Endpoint()] = name
		again := c
		again.Env, again.Grace = map[string]string{"A": "b"}, time.Hour
		if again.Endpoint() != c.Endpoint() {
			t.Errorf("%s: the same command has two names", name)
		}
	}
}

// A server that prints without a line break is given up at once, also before it has answered.
func TestEndlessStdout(t *testing.T) {
	for name, script := range map[string]string{
		"at once": `exec cat /dev/zero`,
		"later": legacy(`*'"tools/list"'*) exec cat /dev/zero;;
			*'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"x"}}\n' "$id";;`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: map[string]string{"STARTS": filepath.Join(t.TempDir(), "starts")}, Grace: -1}
			var err error
			polltest.Within(t, func() {
				var tr mcp.Transport
				if tr, err = c.Dial(t.Context(), &inbound{}, transport.ClientOptions{Logger: discard}); err == nil {
					_, err = tr.RoundTrip(t.Context(), &mcp.Request{Method: "tools/list"})
					tr.Close()
				}
			})
			if !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), "the server's stdout is unusable: 64 MiB arrived without a line break") {
				t.Errorf("got %v", err)
			}
		})
	}
}
