package interop

import (
	"bytes"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/freeport"
)

// serviceLimit bounds the start of a peer's server.
const serviceLimit = 120 * time.Second

// service is a server over HTTP that can be stopped and started again at the same port.
type service struct {
	t       *testing.T
	mark    string
	port    string
	command []string
	process *exec.Cmd // nil while it is stopped
	output  bytes.Buffer
}

// startService starts a server and waits until it serves. command returns the server's command for
// a port. The server ends with the test.
func startService(t *testing.T, command func(port string) []string) *service {
	t.Helper()
	port := findPort(t)
	s := &service{t: t, mark: newMark(t), port: port, command: command(port)}
	s.start()
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("%s said: %s", strings.Join(s.command, " "), shorten(s.output.String()))
		}
	})
	return s
}

// urlOf returns the URL of a path of the service.
func (s *service) urlOf(path string) string { return "http://127.0.0.1:" + s.port + path }

func (s *service) start() {
	s.t.Helper()
	words := withMark(s.mark, s.command...)
	s.process = exec.Command(words[0], words[1:]...)
	s.process.Dir = s.t.TempDir()
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(serviceLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+s.port); err == nil {
			c.Close()
			return
		}
	}
	s.stop()
	s.t.Fatalf("%s does not serve within %v: %s", strings.Join(s.command, " "), serviceLimit, shorten(s.output.String()))
}

// stop kills the process, so that it cannot tell its clients.
func (s *service) stop() {
	s.t.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.Process.Kill(); err != nil {
		s.t.Errorf("ending %s: %v", strings.Join(s.command, " "), err)
	}
	_ = s.process.Wait() // it was killed
	s.process = nil
	expectNoneLeft(s.t, s.mark)
}

// findPort returns a port for a service that may be started again.
func findPort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// The commands of the servers over HTTP, as functions of the port.

func dowelService(t *testing.T) func(string) []string {
	return func(port string) []string {
		return []string{binaryPath(t, "dowel"), "serve", "everything", "--http", port, "--open"}
	}
}

// goService returns the command of a server on a Go SDK: gosdk-server or mcpgo-server.
func goService(t *testing.T, name string) func(string) []string {
	return func(port string) []string { return []string{binaryPath(t, name), "-http", "127.0.0.1:" + port} }
}

// everythingService returns the command of the reference server from npm. mode is streamableHttp or
// sse.
func everythingService(t *testing.T, mode string) func(string) []string {
	return func(port string) []string {
		return []string{"env", "PORT=" + port, npmPath(t, "mcp-server-everything"), mode}
	}
}

// typeScriptService returns the command of the server on the TypeScript SDK v2.
func typeScriptService(t *testing.T) func(string) []string {
	return func(port string) []string {
		return []string{"env", "PORT=" + port, "node", scriptPath(t, "server-v2.mjs")}
	}
}
