//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/doctor"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// doctor takes a server in all forms that other commands take.
func TestDoctorTargets(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"mine": `+p.builtInEntry("everything", "")+`}}`)
	p.expectSuccess("✓ end", "doctor", "--", testBinary(t), serverWord)
	p.expectSuccess("kv built into dowel", "doctor", "kv")
	p.expectSuccess("✓ end", "doctor", "mine")
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("X-Mine"))
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer server.Close()
	if out := p.runDowel("doctor", "--url", server.URL+"/mcp", "-H", "X-Mine: yes"); out.code != exit.Failed || !strings.Contains(out.stdout, "✗") || !strings.Contains(out.stdout, "418") {
		t.Errorf("%+v", out)
	}
	mu.Lock()
	if !strings.Contains(strings.Join(seen, ","), "yes") {
		t.Errorf("the field was not sent: %q", seen)
	}
	mu.Unlock()
	for words, want := range map[string]string{
		"doctor mine --url http://x/mcp": "not both",
		"doctor mine -H A:b":             "--header is for servers at a --url",
		"doctor mine -e A=b":             "do not apply to mine",
		"doctor -e A=b":                  "need the name of a built-in server",
		"doctor everythin":               "did you mean everything?",
		"doctor --":                      "no command after --",
		"doctor --url nowhere":           "write a URL",
	} {
		if out := p.runDowel(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v, want %q", words, out, want)
		}
	}
}

// doctor examines servers in parallel and shows them in order. Each of these servers waits until
// the others have started.
func TestDoctorAtOnce(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	var entries []string
	const n = 3
	for i := range n {
		script := fmt.Sprintf("touch %s/began-%d; until [ -e %s/began-0 ] && [ -e %s/began-1 ] && [ -e %s/began-2 ]; do sleep 0.05; done; exec %s serve everything",
			p.home, i, p.home, p.home, p.home, testBinary(t))
		entries = append(entries, fmt.Sprintf(`"s%d": {"command": "/bin/sh", "args": ["-c", %q]}`, i, script))
	}
	p.writeFile(p.userFile(), `{"mcpServers": {`+strings.Join(entries, ", ")+`}}`)
	out := p.expectSuccess("", "doctor", "--json") // a server that starts alone never answers
	var servers []string
	for text := range strings.Lines(out) {
		var step doctor.StepLine
		if err := json.Unmarshal([]byte(text), &step); err != nil {
			t.Fatal(err)
		}
		if step.Status != "ok" && step.Status != "warning" {
			t.Errorf("%+v", step)
		}
		if len(servers) == 0 || servers[len(servers)-1] != step.Server {
			servers = append(servers, step.Server)
		}
	}
	if got := strings.Join(servers, " "); got != "s0 s1 s2" {
		t.Errorf("they are shown as %s", got)
	}
}
