package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// A client of dowel up --stdio that reads nothing makes its process hold no more answers than the
// limit, and the running dowel none. Other clients are served, and each of its calls has an answer
// once it reads: a result, or an error that names the limit.
func TestUnreadAnswersOverStdio(t *testing.T) {
	t.Parallel()
	const calls, size, most = 76, 1 << 20, 64 << 20
	p := newTestUser(t)
	audit := filepath.Join(p.home, "audit.jsonl")
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"one": %s}, "gateway": {"audit": %q}}`, p.builtInEntry("everything", ""), audit))
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"one": hub.Ready})

	cmd := p.newCommand("up", "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", size)
	for id := range calls {
		_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"one__echo","arguments":{"message":%q},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", id, text, mcp.LatestRevision)
		if err != nil {
			t.Fatal(err)
		}
	}
	running := control.NewClient(control.Path(p.home, p.home))
	polltest.Until(t, "all calls are answered, and nothing waits in the running dowel", func() bool {
		lines, _ := os.ReadFile(audit)
		s, err := running.Status(t.Context())
		return strings.Count(string(lines), "\n") >= calls && err == nil && s.Limits.Bytes.Used == 0
	})
	other := p.startStdioClient("")
	if got, err := client.Call[string](t.Context(), other.Client, "one__echo", map[string]string{"message": "hi"}); err != nil || got != "hi" {
		t.Errorf("another client: %q, %v", got, err)
	}

	results, refused := readAnswers(t, out, calls)
	if results*size > most+2*size || results*size < most/2 || refused != calls-results {
		t.Errorf("%d results and %d refusals of %d calls, want results of about %d MiB", results, refused, calls, most>>20)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d results, %d refusals, at most %d MiB resident", results, refused, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
}

// readAnswers reads lines until n calls are answered. It returns the number of results and of
// errors that name the client's limit.
func readAnswers(t *testing.T, from io.Reader, n int) (results, refused int) {
	t.Helper()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for results+refused < n && lines.Scan() {
		var answer struct{ Error *mcp.Error }
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		switch {
		case answer.Error == nil:
			results++
		case strings.Contains(answer.Error.Message, "(clientBytes)"):
			refused++
		default:
			t.Fatal(answer.Error)
		}
	}
	return results, refused
}
