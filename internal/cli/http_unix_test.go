//go:build unix

package cli

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// serveOverHTTP starts a built-in server at a free port; stop sends it Ctrl-C and returns its exit
// code.
func serveOverHTTP(t *testing.T, words ...string) (base string, stop func() int) {
	t.Helper()
	cmd := newCommand(t, append([]string{"serve", "--http", "0"}, words...)...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); m != "" {
			base = m
			break
		}
	}
	if base == "" {
		t.Fatal("the server does not say where it is")
	}
	stop = func() int {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // ProcessState has the result
		return cmd.ProcessState.ExitCode()
	}
	return base, stop
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	base, stop := serveOverHTTP(t, "everything")
	header := strings.TrimSpace(runDowel(t, "", "status", "--token").stdout)
	ws := "ws" + strings.TrimPrefix(base, "http") + "/ws"
	for _, url := range []string{base + "/mcp", ws} {
		if out := runDowel(t, "", "tools", "--url", url); out.code != exit.Connection || !strings.Contains(out.stderr, "dowel status --token") {
			t.Errorf("without the token: %+v", out)
		}
	}
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"call", "echo", "message=hi", "--url", base + "/mcp"}, "hi\n"},
		{[]string{"call", "echo", "message=hi", "--url", base + "/mcp", "--revision", "2025-11-25"}, "hi\n"},
		{[]string{"call", "echo", "message=hi", "--url", base + "/sse"}, "hi\n"},
		{[]string{"call", "echo", "message=hi", "--url", ws}, "hi\n"},
		{[]string{"call", "echo", "message=hi", "--url", ws, "--revision", "2025-11-25"}, "hi\n"},
		{[]string{"read", "test://static-text", "--url", base + "/mcp"}, "This is the content of the static text resource."},
		{[]string{"tools", "--json", "--url", base + "/mcp"}, `"name":"echo"`},
	} {
		out := runDowel(t, "", append(test.words, "-H", header)...)
		if out.code != 0 || !strings.Contains(out.stdout, test.want) {
			t.Errorf("%v: exit code %d, stdout %.300s, stderr %s", test.words, out.code, out.stdout, out.stderr)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
}

// An agent uses a server at a URL and names it by its host.
func TestAgentAtURL(t *testing.T) {
	m := newModel(t, `{"turns": [
		{"calls": [{"name": "server__echo", "arguments": {"message": "from afar"}}]}, {"expect": ["from afar"], "text": "It said so."},
		{"calls": [{"name": "server__echo", "arguments": {"message": "from there"}}]}, {"expect": ["from there"], "text": "So again."}]}`)
	base, stop := serveOverHTTP(t, "everything", "--open")
	if out := runDowel(t, "", "run", "Say it.", "--trust-annotations", "--model", "gpt-test", "--base-url", m.url, "--url", base+"/mcp"); out.code != exit.OK || out.stdout != "It said so.\n" {
		t.Errorf("%+v", out)
	}
	if out := runDowel(t, "Say it.\n", "chat", "--no-save", "--trust-annotations", "--model", "gpt-test", "--base-url", m.url, "--url", base+"/sse"); out.code != exit.OK || !strings.Contains(out.stdout, "So again.") {
		t.Errorf("%+v", out)
	}
	stop()
}

func TestHeaderFlag(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer x" && len(r.Header.Values("X-More")) == 2 {
			asked.Add(1)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer web.Close()
	out := runDowel(t, "", "tools", "--url", web.URL, "-H", "Authorization: Bearer x", "-H", "X-More: 1", "-H", "x-more:2", "--wire")
	if out.code != exit.Connection || !strings.Contains(out.stderr, "418") || asked.Load() == 0 {
		t.Errorf("exit code %d, %d requests, stderr: %s", out.code, asked.Load(), out.stderr)
	}
	if strings.Contains(out.stderr, "Bearer x") {
		t.Errorf("--wire shows the credentials: %s", out.stderr)
	}
}

func TestURLFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{"tools", "--url", "http://127.0.0.1:1/mcp"}, exit.Connection, "refused"},
		{[]string{"tools", "--url", "ftp://x/mcp"}, exit.Usage, "write a URL"},
		{[]string{"tools", "--url", "http://127.0.0.1:1/", "-H", "no colon"}, exit.Usage, "Name: value"},
		{[]string{"tools", "-H", "a: b", "everything"}, exit.Usage, "--url"},
		{[]string{"serve", "everything", "--http", "127.0.0.1:99999"}, exit.Failed, "99999"},
	} {
		if out := runDowel(t, "", test.words...); out.code != test.code || !strings.Contains(out.stderr, test.says) {
			t.Errorf("%v: exit code %d, want %d: %s", test.words, out.code, test.code, out.stderr)
		}
	}
}
