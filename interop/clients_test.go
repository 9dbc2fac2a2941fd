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

// runClient runs a client that prints a JSON line for each of its checks, and makes a subtest of each.
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
		t.Errorf("%s: %d checks, %v\nstderr: %s", strings.Join(command, " "), ran, err, short(stderr.String()))
	}
	noneLeft(t, mark)
}

// clients are the foreign clients, as command lines up to the server's.
func clients(t *testing.T, server string) map[string][]string {
	return map[string][]string{
		"TypeScript v1":      {"node", script(t, "client-v1.mjs"), "--server", server},
		"TypeScript v2":      {"node", script(t, "client-v2.mjs"), "--server", server},
		"TypeScript v2 auto": {"node", script(t, "client-v2.mjs"), "--era", "auto", "--server", server},
	}
}

// goClients are the Go SDKs' clients in both eras, as command lines up to the server's; without names checks to leave out.
func goClients(t *testing.T, without string) map[string][]string {
	all := map[string][]string{}
	for _, name := range []string{"gosdk-client", "mcpgo-client"} {
		for _, revision := range []string{modernRevision, "2025-11-25", "2025-06-18", "2025-03-26"} {
			all[name+" "+revision] = []string{built(t, name), "-version", revision, "-without", without}
		}
	}
	return all
}

func TestClientsOfDowel(t *testing.T) {
	server := []string{built(t, "dowel"), "serve", "everything"}
	for name, client := range clients(t, "dowel") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runClient(t, append(client, server...)...)
		})
	}
	for name, client := range goClients(t, "") {
		if strings.HasSuffix(name, " 2025-03-26") {
			// Elicitation belongs to 2025-06-18 and later; these clients declare it all the same, and dowel does not ask.
			client[len(client)-1] = "elicitation,several questions,several rounds,question with state,prompt that asks"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runClient(t, append(client, server...)...)
		})
	}
}

// The same clients on the other servers show that it is dowel that is tested above, and not the clients.

func TestControlTypeScriptClients(t *testing.T) {
	for server, command := range map[string][]string{
		"gosdk": {built(t, "gosdk-server")}, "mcpgo": {built(t, "mcpgo-server")},
		"gosdk-everything": {built(t, "everything-server")}, "everything": {npm(t, "mcp-server-everything")},
	} {
		for name, client := range clients(t, server) {
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
	// What the peers' servers do not offer.
	const without = "image,audio,resource,mixed content,several questions,several rounds,question with state,prompt that asks"
	for _, server := range []string{"gosdk-server", "mcpgo-server"} {
		for name, client := range goClients(t, without) {
			if server == "mcpgo-server" && name == "gosdk-client "+modernRevision {
				client[len(client)-1] += ",roots" // mcp-go asks for roots without params, which the Go SDK cannot read
			}
			t.Run(name+" "+server, func(t *testing.T) {
				t.Parallel()
				runClient(t, append(client, built(t, server))...)
			})
		}
	}
}
