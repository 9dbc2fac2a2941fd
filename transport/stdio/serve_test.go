//go:build unix

package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// serveKey is an environment variable that makes the test binary a server on its standard streams.
// Its value is the duration after which the server ends at the latest.
const serveKey = "DOWEL_STDIO_TEST_SERVE"

func init() {
	limit, err := time.ParseDuration(os.Getenv(serveKey))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("time is up"))
	defer cancel()
	err = Serve(ctx, mcp.HandlerFunc(serveTest))
	fmt.Fprintln(os.Stderr, "served:", err)
	fmt.Println("printed after Serve")
	fmt.Fprintln(os.Stderr, "again:", Serve(context.Background(), mcp.HandlerFunc(serveTest)))
	os.Exit(0)
}

// The call "slow" waits for childEnded, which reportChildEnd closes after the call "child" has run
// its child process.
var (
	childEnded     = make(chan struct{})
	reportChildEnd = sync.OnceFunc(func() { close(childEnded) })
)

// serveTest writes to standard output in all the ways that a handler could by mistake.
func serveTest(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	fmt.Println("printed by a handler")
	os.Stdout.WriteString("written by a handler\n")
	log.New(os.Stdout, "", 0).Print("logged by a handler")
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.Result{ServerInfo: json.RawMessage(`{"name":"s","version":"1"}`), Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions()}}, nil
	case mcp.MethodCallTool:
		if bytes.Contains(req.Params, []byte(`"slow"`)) {
			<-childEnded
		}
		if bytes.Contains(req.Params, []byte(`"child"`)) {
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "echo printed by a child")
			cmd.Stdout = os.Stdout
			if err := cmd.Run(); err != nil {
				return nil, err
			}
			reportChildEnd()
		}
		return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("done")}}}, nil
	}
	return nil, mcp.MethodNotFound(req.Method)
}

// server returns the command that runs the test binary as a server for at most limit.
func server(limit string) Command {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Command{Path: exe, Env: map[string]string{serveKey: limit, "GORACE": "atexit_sleep_ms=0"}}
}

const callSlow = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"

// Standard output contains messages and nothing else, for each kind of standard input.
func TestServeOnStandardStreams(t *testing.T) {
	for name, connect := range map[string]func(t *testing.T, cmd *exec.Cmd) (stdout io.Reader){
		"pipes": func(t *testing.T, cmd *exec.Cmd) io.Reader {
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(in, "\n"+callSlow+"rubbish\n"+strings.Replace(strings.Replace(callSlow, `"id":1`, `"id":2`, 1), "slow", "child", 1))
			in.Close() // while the calls are in flight
			return out
		},
		"a file": func(t *testing.T, cmd *exec.Cmd) io.Reader {
			path := filepath.Join(t.TempDir(), "in")
			if err := os.WriteFile(path, []byte(callSlow+"rubbish\n"+strings.TrimSpace(strings.Replace(strings.Replace(callSlow, `"id":1`, `"id":2`, 1), "slow", "child", 1))), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			cmd.Stdin = f
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			return out
		},
		"a socket": func(t *testing.T, cmd *exec.Cmd) io.Reader {
			near, far := socketPair(t)
			cmd.Stdin, cmd.Stdout = far, far
			go func() {
				io.WriteString(near, callSlow+"rubbish\n"+strings.Replace(strings.Replace(callSlow, `"id":1`, `"id":2`, 1), "slow", "child", 1))
				near.(*net.UnixConn).CloseWrite()
			}()
			return near
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := server("10m")
			cmd := exec.Command(c.Path)
			cmd.Env = append(os.Environ(), serveKey+"=10m")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout := connect(t, cmd)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if f, ok := cmd.Stdout.(*os.File); ok {
				f.Close()
			}
			seen := map[string]bool{} // the id of each answer, and whether it has a result: "1true"
			for scan := bufio.NewScanner(stdout); scan.Scan(); {
				var m struct {
					JSONRPC string
					ID      json.RawMessage
					Result  json.RawMessage
				}
				if err := json.Unmarshal(scan.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
					t.Errorf("on standard output: %q", scan.Text())
				}
				seen[string(m.ID)+fmt.Sprint(m.Result != nil)] = true
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, stderr.Bytes())
			}
			if !seen["1true"] || !seen["2true"] || !seen["false"] {
				t.Errorf("got the answers %v, want results for 1 and 2, and an error without an id for the rubbish", seen)
			}
			for _, line := range []string{"printed by a handler", "written by a handler", "logged by a handler", "printed by a child", "printed after Serve", "served: <nil>", "again: stdio.Serve has been called before"} {
				if !strings.Contains(stderr.String(), line) {
					t.Errorf("standard error lacks %q:\n%s", line, stderr.Bytes())
				}
			}
		})
	}
}

func socketPair(t *testing.T) (near net.Conn, far *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	f := os.NewFile(uintptr(fds[0]), "near")
	defer f.Close()
	if near, err = net.FileConn(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return near, os.NewFile(uintptr(fds[1]), "far")
}

// Serve returns when its context ends, even if standard input stays open.
func TestServeEndsWithItsContext(t *testing.T) {
	for name, stdin := range map[string]func(t *testing.T) (*os.File, func()){
		"a pipe": func(t *testing.T) (*os.File, func()) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return r, func() { r.Close(); w.Close() }
		},
		"a FIFO": func(t *testing.T) (*os.File, func()) { // Serve reads it in a goroutine
			path := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f, func() { f.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(server("").Path)
			cmd.Env = append(os.Environ(), serveKey+"=200ms")
			in, done := stdin(t)
			defer done()
			cmd.Stdin = in
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var err error
			polltest.Within(t, func() { err = cmd.Wait() })
			if err != nil || !strings.Contains(stderr.String(), "served: time is up") {
				t.Errorf("%v\n%s", err, stderr.Bytes())
			}
		})
	}
}

// A client and a server of every revision exchange messages over a pipe.
func TestServeStream(t *testing.T) {
	for _, r := range mcp.Revisions() {
		t.Run(string(r), func(t *testing.T) {
			near, far := net.Pipe()
			served := make(chan error, 1)
			go func() {
				served <- ServeStream(context.Background(), far, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
					if req.Method == mcp.MethodDiscover {
						return &mcp.Result{Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions()}}, nil
					}
					return &mcp.Result{Raw: json.RawMessage("{\n\t\"content\": [],\r\n\t\"n\": 1.0\n}")}, nil
				}), Options{ServerOptions: transport.ServerOptions{Logger: discard}, MaxMessage: 5000000}, Options{MaxMessage: 4096})
			}()
			c, err := overconn.Connect(t.Context(), Conn(near, 0), &inbound{}, "", transport.ClientOptions{Revision: r, Logger: discard, Tap: mcptest.ClientTap(t, mcptest.WithoutChecks("client:framing"))})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				res, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage("{\n\"name\":\"x\"\n}")})
				if err != nil || !bytes.Contains(res.Raw, []byte("1.0")) {
					t.Fatalf("%+v, %v", res, err)
				}
				big := json.RawMessage(`{"name":"` + strings.Repeat("x", 5000) + `"}`)
				var e *mcp.Error
				if _, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: big}); !errors.As(err, &e) || e.Code != -32600 {
					t.Errorf("over the limit: %v", err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
