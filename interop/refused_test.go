package interop

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var updateRefused = flag.Bool("update-refused", false, "record what the clients show when they are refused")

// refusedClient is a client of another maker that has the gateway's URL, and no valid token.
type refusedClient struct {
	name, folder string   // of the program, and the folder of its npm packages
	words        []string // of its command line; URL stands for the gateway's
	// config is its configuration file below the home, and how to write it. header is empty, or the
	// wrong token.
	config string
	write  func(url, header string) string
	// headerWords are added to the command line for a wrong token.
	headerWords []string
	shows       bool // the client shows the text of the refusal
}

var fewRefused = []refusedClient{
	{
		name: "gemini", folder: "few", words: words("mcp", "list"), config: ".gemini/settings.json",
		write: func(url, header string) string {
			return fmt.Sprintf(`{"mcpServers": {"gate": {"httpUrl": %q%s}}, "security": {"folderTrust": {"enabled": false}}}`, url, headersMember(header))
		},
	},
	{
		name: "mcp-inspector", folder: "few", words: words("--cli", "URL", "--transport", "http", "--method", "tools/list"),
		headerWords: words("--header", "Authorization: "+wrongToken),
	},
	{
		name: "mcp-inspector", folder: "few", words: words("--cli", "URL", "--transport", "http", "--method", "tools/list", "--stored-auth-only"),
		headerWords: words("--header", "Authorization: "+wrongToken), shows: true,
	},
}

const wrongToken = "Bearer wrong"

func headersMember(header string) string {
	if header == "" {
		return ""
	}
	return fmt.Sprintf(`, "headers": {"Authorization": %q}`, header)
}

// Clients of others with no token and with a wrong one show what testdata/refused has. No client
// opens a browser or reaches anything but a 404 where it looks for a login.
func TestRefusedClients(t *testing.T) { testRefused(t, "refused-few.txt", fewRefused) }

func testRefused(t *testing.T, golden string, clients []refusedClient) {
	r := newResident(t)
	r.write(filepath.Join(r.home, ".config", "dowel", "dowel.json"), fmt.Sprintf(`{"mcpServers": {"every": {"command": %q, "args": ["serve", "everything"]}}}`, binaryPath(t, "dowel")))
	gate := newRecorder(t, r.startDowel(words("every")))
	var all strings.Builder
	for _, c := range clients {
		for _, token := range []string{"", wrongToken} {
			all.WriteString(gate.refuse(t, c, token))
		}
	}
	r.stopDowel(2)
	path := filepath.Join("testdata", golden)
	if *updateRefused {
		if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != all.String() {
		t.Errorf("the clients show something else than %s (record it with -update-refused): %v\n%s", path, err, all.String())
	}
}

// recorder passes requests to the gateway and records them with their answers.
type recorder struct {
	url      string // of the gateway's endpoint, through the recorder
	mu       sync.Mutex
	requests []string
}

func newRecorder(t *testing.T, gateway string) *recorder {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(gateway, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(answer *http.Response) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, fmt.Sprintf("%s %s: %d", answer.Request.Method, answer.Request.URL.Path, answer.StatusCode))
		return nil
	}
	web := httptest.NewServer(proxy)
	t.Cleanup(web.Close)
	r.url = web.URL + "/mcp"
	return r
}

// refuse runs a client and returns what it shows and asks for.
func (r *recorder) refuse(t *testing.T, c refusedClient, token string) string {
	t.Helper()
	home, opened := t.TempDir(), filepath.Join(t.TempDir(), "opened")
	line := append([]string{}, c.words...)
	if token != "" {
		line = append(line, c.headerWords...)
	}
	if c.config != "" {
		path := filepath.Join(home, c.config)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.write(r.url, token)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if i := slices.Index(line, "URL"); i >= 0 {
		line[i] = r.url
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, requireFile(t, filepath.Join("refused", c.folder, "node_modules", ".bin", c.name)), line...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(isolatedEnv(t, home, opened), "NO_COLOR=1")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run() // a refusal is a failure for some of them
	if ctx.Err() != nil || cmd.ProcessState == nil || output.Len() == 0 {
		t.Fatalf("%s: %v: %s", c.name, err, output.String())
	}
	if _, err := os.Stat(opened); err == nil {
		t.Errorf("%s opens a browser", c.name)
	}
	title := fmt.Sprintf("=== %s %s, %s\n", c.name, strings.Join(c.words, " "), map[bool]string{true: "no token", false: "a wrong token"}[token == ""])
	shown := r.clean(output.String(), home)
	if c.shows && !strings.Contains(shown, "dowel status --token") {
		t.Errorf("%s does not show how to get in:\n%s", c.name, shown)
	}
	return title + shown + r.takeRequests(t, c.name)
}

// isolatedEnv returns an environment with an empty home, in which no client reaches its maker or
// opens a browser unseen.
func isolatedEnv(t *testing.T, home, opened string) []string {
	t.Helper()
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %q\n", opened)
	for _, name := range []string{"xdg-open", "open", "sensible-browser", "x-www-browser", "www-browser", "firefox", "google-chrome", "chromium"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"HOME=" + home, "PATH=" + bin + ":" + filepath.Dir(node) + ":/usr/bin:/bin", "BROWSER=" + filepath.Join(bin, "xdg-open"), "LANG=C.UTF-8", "CI=1",
		"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
	}
}

var escapeSequence = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// clean removes everything from a client's output that differs between runs.
func (r *recorder) clean(output, home string) string {
	output = escapeSequence.ReplaceAllString(output, "")
	output = strings.ReplaceAll(strings.ReplaceAll(output, r.url, "URL"), home, "HOME")
	var kept strings.Builder
	for line := range strings.SplitSeq(output, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !strings.HasPrefix(line, "WARNING: proceeding") { // Codex warns of a home in a temporary folder
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}

// takeRequests returns the requests since the last call, sorted and each once. It fails the test if
// a client that looks for a login finds anything.
func (r *recorder) takeRequests(t *testing.T, client string) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.requests)
	all := slices.Compact(r.requests)
	r.requests = nil
	var text strings.Builder
	for _, one := range all {
		text.WriteString("> " + one + "\n")
		if strings.Contains(one, " /mcp: ") {
			if !strings.HasSuffix(one, ": 401") {
				t.Errorf("%s: %s, want 401", client, one)
			}
		} else if !strings.HasSuffix(one, ": 404") || strings.Contains(one, "/authorize") || strings.Contains(one, "/token") {
			t.Errorf("%s starts a login: %s", client, one)
		}
	}
	return text.String()
}
