package interop

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Tests of dowel up with client libraries and proxies of other makers. None of them needs a network
// account.

// fewHosts are the client libraries of make test.
var fewHosts = []string{"ai-sdk", "langchain"}

func TestHosts(t *testing.T) { testHosts(t, "few", fewHosts) }

// testHosts runs client libraries against the gateway's URL with its token, and against
// dowel up --stdio beside the running dowel.
func testHosts(t *testing.T, folder string, hosts []string) {
	t.Parallel()
	r := newEveryResident(t)
	url := r.startDowel(words("every"))
	name, value, _ := strings.Cut(r.runDowel("status", "--token"), ": ")
	targets := map[string]any{
		"http":  map[string]any{"url": url, "headers": map[string]string{name: strings.TrimSpace(value)}},
		"stdio": map[string]any{"command": "env", "args": r.guestCommand()},
	}
	for _, host := range hosts {
		for carrier, target := range targets {
			text, err := json.Marshal(target)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(host+" "+carrier, func(t *testing.T) {
				requireFile(t, filepath.Join("hosts", folder, "node_modules"))
				runClient(t, "node", requireFile(t, filepath.Join("hosts", folder, "host.mjs")), host, string(text))
			})
		}
	}
	r.stopDowel(2)
}

// newEveryResident returns a user with dowel's everything server, named every.
func newEveryResident(t *testing.T) *resident {
	r := newResident(t)
	r.write(filepath.Join(r.home, ".config", "dowel", "dowel.json"),
		fmt.Sprintf(`{"mcpServers": {"every": {"command": %q, "args": ["serve", "everything"]}}}`, binaryPath(t, "dowel")))
	return r
}

// guestCommand returns dowel up --stdio of the resident as arguments of env.
func (r *resident) guestCommand() []string {
	return append(append(r.env, "HOME="+r.home), binaryPath(r.t, "dowel"), "up", "--stdio")
}

// A proxy that serves stdio stands between dowel as the client and the gateway, which wants its
// token.
func TestProxiesToGateway(t *testing.T) {
	t.Parallel()
	r := newEveryResident(t)
	url := r.startDowel(words("every"))
	header := strings.TrimSpace(r.runDowel("status", "--token"))
	_, token, _ := strings.Cut(header, "Bearer ")
	t.Run("mcp-remote", func(t *testing.T) {
		useEvery(t, words(hostPath(t, "mcp-remote"), url, "--header", header))
	})
	t.Run("supergateway", func(t *testing.T) {
		// supergateway 4.0.0 refuses a second request that arrives before it has connected. Here it
		// starts so late that dowel has sent both server/discover and initialize.
		proxy := words("sh", "-c", `sleep 4; exec "$0" "$@"`, hostPath(t, "supergateway"), "--streamableHttp", url, "--oauth2Bearer", token, "--logLevel", "none")
		useEvery(t, proxy)
	})
	r.stopDowel(2)
}

// A proxy that serves HTTP starts dowel up --stdio, and dowel is its client.
func TestProxiesOfGateway(t *testing.T) {
	t.Parallel()
	r := newEveryResident(t)
	r.startDowel(words("every"))
	for name, proxy := range map[string]struct {
		command func(port string) []string
		path    string
	}{
		"supergateway": {func(port string) []string {
			return []string{hostPath(t, "supergateway"), "--stdio", "env " + strings.Join(r.guestCommand(), " "), "--outputTransport", "streamableHttp", "--stateful", "--port", port}
		}, "/mcp"},
		"supergateway sse": {func(port string) []string {
			return []string{hostPath(t, "supergateway"), "--stdio", "env " + strings.Join(r.guestCommand(), " "), "--outputTransport", "sse", "--port", port}
		}, "/sse"},
		"mcp-proxy": {func(port string) []string {
			return append([]string{hostPath(t, "mcp-proxy"), "--host", "127.0.0.1", "--port", port, "--", "env"}, r.guestCommand()...)
		}, "/mcp"},
		"mcp-proxy sse": {func(port string) []string {
			return append([]string{hostPath(t, "mcp-proxy"), "--host", "127.0.0.1", "--port", port, "--server", "sse", "--", "env"}, r.guestCommand()...)
		}, "/sse"},
	} {
		t.Run(name, func(t *testing.T) { useEvery(t, words(startService(t, proxy.command).urlOf(proxy.path))) })
	}
	r.stopDowel(2)
}

// useEvery lists the gateway's tools through a proxy, and calls one.
func useEvery(t *testing.T, proxy []string) {
	t.Helper()
	c := newCLI(t)
	expectMember(t, c.runJSON(proxy, "tools"), "name", "every__echo")
	c.expectSuccess(proxy, words("call", "every__echo", "message=grüße"), "grüße")
}

// hostPath returns the path of a proxy from npm.
func hostPath(t *testing.T, program string) string {
	t.Helper()
	return requireFile(t, filepath.Join("hosts", "few", "node_modules", ".bin", program))
}
