//go:build linux

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// npmServer returns the entry of a server that npm has installed here. It may keep its memory in a
// folder.
func npmServer(t *testing.T, folder, program string, words ...string) json.RawMessage {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", program))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run make browser-deps", err)
	}
	text, err := json.Marshal(map[string]any{"command": path, "args": append([]string{}, words...), "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(folder, "memory.jsonl")}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Two clients of the TypeScript SDKs, one of each era, and an agent use five servers of npm at
// once, while two consoles follow. Each result belongs to its call, and both consoles have each
// operation once, under its client and its server.
func TestCrowd(t *testing.T) {
	const rounds = 25
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{
		"reference": npmServer(t, u.project, "mcp-server-everything"), "memory": npmServer(t, u.project, "mcp-server-memory"), "files": npmServer(t, u.project, "mcp-server-filesystem", u.project),
		"thinking": npmServer(t, u.project, "mcp-server-sequential-thinking"), "github": npmServer(t, u.project, "mcp-server-github"),
	})
	u.configureModel(`{"turns": [{"calls": [{"name": "reference__echo", "arguments": {"message": "agent-of-the-crowd"}}, {"name": "reference__get-sum", "arguments": {"a": 19, "b": 23}}]},
		{"expect": ["agent-of-the-crowd", "42"], "text": "Both worked."}]}`)
	u.start()
	tabs := []*tab{newTab(t, u.url), newTab(t, u.url)}
	for _, p := range tabs {
		p.show(looks[0])
		p.login(u)
		for _, name := range []string{"reference", "memory", "files", "thinking", "github"} {
			p.state(name, "ready")
		}
		p.do(chromedp.Navigate(u.url + "/console/wire"))
	}

	token := u.token()
	var programs sync.WaitGroup
	run := func(cmd *exec.Cmd) {
		programs.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args, err, out)
			}
		})
	}
	for _, version := range []string{"v1", "v2"} {
		script, err := filepath.Abs("crowd.mjs")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("node", script, u.url+"/mcp", version, fmt.Sprint(rounds))
		cmd.Dir, cmd.Env = u.project, append(os.Environ(), "AUTHORIZATION="+token)
		run(cmd)
	}
	run(u.command("run", "--approve", "all", "Greet the crowd, and add 19 and 23"))
	programs.Wait()
	if t.Failed() {
		return
	}

	for i, p := range tabs {
		expectOperations := func(filter string, n int) {
			t.Helper()
			p.do(chromedp.Navigate(u.url + "/console/wire"))
			p.do(chromedp.Navigate(u.url + "/console/wire?q=" + filter))
			p.until(fmt.Sprintf(`document.querySelector(".bar .number")?.textContent === "%d operation%s"`, n, map[bool]string{true: "", false: "s"}[n == 1]))
		}
		expectOperations("method:tools/call", 2*4*rounds+2)
		for _, client := range []string{"crowd-v1", "crowd-v2"} {
			expectOperations("method:tools/call+client:"+client, 4*rounds)
			for _, server := range []string{"reference", "memory", "files", "thinking"} {
				expectOperations("method:tools/call+client:"+client+"+server:"+server, rounds)
			}
		}
		expectOperations("method:tools/call+client:crowd-v1+v2-", 0)
		expectOperations("method:tools/call+client:crowd-v2+v1-", 0)
		expectOperations("method:tools/call+agent-of-the-crowd", 1)
		expectOperations("method:tools/call+-status:ok", 0)
		p.do(chromedp.Navigate(u.url + "/console/wire"))
		p.until(`document.querySelectorAll(".row").length > 10`)
		if eval[bool](p, `!!document.querySelector(".row.gap")`) {
			t.Errorf("console %d has lost records", i)
		}
		p.do(chromedp.Navigate(u.url + "/console/chat"))
		p.sees("Greet the crowd")
		p.checkQuiet()
	}
}
