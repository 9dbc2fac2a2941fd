package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/interop/peers/report"
)

// clientLimit is the longest that a client may take for all of its checks.
const clientLimit = 3 * time.Minute

// runClient runs a client that prints a JSON line for each of its checks, and makes a subtest of
// each.
func runClient(t *testing.T, command ...string) {
	t.Helper()
	mark := newMark(t)
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	words := withMark(mark, command...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = grace
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	ran, failed := 0, 0
	for lines := bufio.NewScanner(&stdout); lines.Scan(); {
		var check report.Check
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil {
			t.Fatalf("not a check: %q", lines.Text())
		}
		ran++
		t.Run(check.Name, func(t *testing.T) {
			if !check.OK {
				failed++
				t.Error(check.Detail)
			}
		})
	}
	if ran == 0 || err != nil && failed == 0 {
		t.Errorf("%s: %d checks, %v\nstderr: %s", strings.Join(command, " "), ran, err, shorten(stderr.String()))
	}
	expectNoneLeft(t, mark)
}

// The carriers, as the clients' command lines name them.
const (
	overStdio = "stdio"
	overHTTP  = "http" // Streamable HTTP
	overSSE   = "sse"  // HTTP+SSE of 2024-11-05
)

// typeScriptClients returns the clients on the TypeScript SDKs by name, as command lines without
// the server's command or URL at the end.
func typeScriptClients(t *testing.T, server, carrier string) map[string][]string {
	all := map[string][]string{
		"TypeScript v1":      {"node", scriptPath(t, "client-v1.mjs")},
		"TypeScript v2":      {"node", scriptPath(t, "client-v2.mjs")},
		"TypeScript v2 auto": {"node", scriptPath(t, "client-v2.mjs"), "--era", "auto"},
	}
	if carrier == overSSE {
		delete(all, "TypeScript v2") // a client that insists on the modern era cannot speak over HTTP+SSE
	}
	for name, words := range all {
		all[name] = append(words, "--server", server, "--carrier", carrier)
	}
	return all
}

// Names of checks to leave out for some peers.
const (
	// Checks that need elicitation. Revision 2025-06-18 introduced it. The clients on the Go SDKs
	// declare it for older ones too, and dowel then does not ask.
	eliciting = "elicitation,several questions,several rounds,question with state,prompt that asks"
	// Checks of features that the peers' servers do not have.
	notInPeers = "image,audio,resource,mixed content,several questions,several rounds,question with state,prompt that asks"
	// Checks of features that dowel's everything server does not have.
	notInEverything = "cancel reaches the server"
)

// goClient returns the command line of a client on a Go SDK for one revision, without the server's
// command or URL at the end. without names checks to leave out.
func goClient(t *testing.T, name, carrier, revision string, without ...string) []string {
	return []string{binaryPath(t, name), "-carrier", carrier, "-version", revision, "-without", strings.Join(without, ",")}
}

// goClientsOfDowel returns the clients on the Go SDKs, in all revisions that a carrier has, for
// dowel's everything server.
func goClientsOfDowel(t *testing.T, carrier string) map[string][]string {
	all := map[string][]string{}
	for _, name := range []string{"gosdk-client", "mcpgo-client"} {
		for _, revision := range []string{modernRevision, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
			without := []string{notInEverything}
			if revision < "2025-06-18" {
				without = append(without, eliciting)
			}
			if revision < "2025-03-26" {
				without = append(without, "audio") // this revision replaces audio by text
			}
			if name == "mcpgo-client" && carrier == overSSE {
				// Over HTTP+SSE the SDK answers no questions, although it declares the
				// capabilities.
				without = append(without, "elicitation,sampling,roots,several questions,several rounds,question with state,prompt that asks")
			}
			if revision == modernRevision && carrier == overSSE || revision == "2024-11-05" && carrier == overHTTP {
				continue // the revision does not have this carrier
			}
			all[name+" "+revision] = goClient(t, name, carrier, revision, without...)
		}
	}
	return all
}

func TestClientsOfDowel(t *testing.T) {
	server := []string{binaryPath(t, "dowel"), "serve", "everything"}
	for name, client := range mergeMaps(typeScriptClients(t, "dowel", overStdio), goClientsOfDowel(t, overStdio)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runClient(t, append(client, server...)...)
		})
	}
}

// Each client has its own process of the server, which serves both carriers.
func TestClientsOfDowelOverHTTP(t *testing.T) {
	for carrier, path := range map[string]string{overHTTP: "/mcp", overSSE: "/sse"} {
		for name, client := range mergeMaps(typeScriptClients(t, "dowel", carrier), goClientsOfDowel(t, carrier)) {
			t.Run(name+" "+carrier, func(t *testing.T) {
				t.Parallel()
				runClient(t, append(client, startService(t, dowelService(t)).urlOf(path))...)
			})
		}
	}
}

// One process serves clients of both eras at the same time, on both carriers.
func TestClientsOfOneDowel(t *testing.T) {
	t.Parallel()
	s := startService(t, dowelService(t))
	for carrier, path := range map[string]string{overHTTP: "/mcp", overSSE: "/sse"} {
		for name, client := range typeScriptClients(t, "dowel", carrier) {
			t.Run(name+" "+carrier, func(t *testing.T) {
				t.Parallel()
				runClient(t, append(client, s.urlOf(path))...)
			})
		}
	}
}

func mergeMaps(maps ...map[string][]string) map[string][]string {
	all := map[string][]string{}
	for _, m := range maps {
		for name, words := range m {
			all[name] = words
		}
	}
	return all
}

// Control tests: the same clients with other servers. If one of these fails too, the fault is in
// the client.

func TestControlTypeScriptClients(t *testing.T) {
	for server, command := range map[string][]string{
		"gosdk": {binaryPath(t, "gosdk-server")}, "mcpgo": {binaryPath(t, "mcpgo-server")},
		"gosdk-everything": {binaryPath(t, "everything-server")}, "everything": {npmPath(t, "mcp-server-everything")},
	} {
		for name, client := range typeScriptClients(t, server, overStdio) {
			if server == "everything" && name == "TypeScript v2" {
				continue // a client that insists on the modern era cannot speak to a legacy server
			}
			t.Run(name+" "+server, func(t *testing.T) {
				t.Parallel()
				runClient(t, append(client, command...)...)
			})
		}
	}
}

func TestControlGoClients(t *testing.T) {
	for _, server := range []string{"gosdk-server", "mcpgo-server"} {
		for _, name := range []string{"gosdk-client", "mcpgo-client"} {
			for _, revision := range []string{modernRevision, "2025-11-25", "2025-06-18", "2025-03-26"} {
				without := []string{notInPeers}
				if server == "mcpgo-server" && name == "gosdk-client" && revision == modernRevision {
					without = append(without, "roots") // mcp-go asks for roots without params, which the Go SDK cannot read
				}
				t.Run(name+" "+revision+" "+server, func(t *testing.T) {
					t.Parallel()
					runClient(t, append(goClient(t, name, overStdio, revision, without...), binaryPath(t, server))...)
				})
			}
		}
	}
}
