package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// scriptServer is a legacy server without tools, as a script for sh.
const scriptServer = `while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
  *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done`

// writeScript writes an executable script and returns its path.
func writeScript(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Package runners start a few at a time, and the states say that they install.
func TestRunnersTakeTurns(t *testing.T) {
	t.Parallel()
	goFile := filepath.Join(t.TempDir(), "go")
	npx := writeScript(t, "npx", `while [ ! -e "$GO" ]; do sleep 0.05 </dev/null; done; sh -c "$SERVER"`)
	const servers = 10
	var definitions []hub.Definition
	for i := range servers {
		definitions = append(definitions, hub.Definition{Name: fmt.Sprint("s", i), Target: stdio.Command{
			Path: npx, Args: []string{"-y", "pkg"}, Env: map[string]string{"GO": goFile, "SERVER": scriptServer},
		}})
	}
	h := start(t, hub.Options{Logger: quiet}, definitions...)
	polltest.Until(t, "some install and the others wait", func() bool {
		installing, waiting := 0, 0
		for _, u := range h.Upstreams() {
			switch s := u.State(); {
			case !s.Installing.IsZero() && s.Status == hub.Starting && s.Cause == "npx is installing the server":
				installing++
			case s.Installing.IsZero() && strings.HasPrefix(s.Cause, "it waits for its turn"):
				waiting++
			}
		}
		return installing >= 3 && installing <= 8 && waiting == servers-installing
	})
	if err := os.WriteFile(goFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "all are ready", func() bool {
		for _, u := range h.Upstreams() {
			if s := u.State(); s.Status != hub.Ready || !s.Installing.IsZero() {
				return false
			}
		}
		return true
	})
}

// A server that waits for a login has a state of its own, and is not ended meanwhile.
func TestLoginState(t *testing.T) {
	t.Parallel()
	goFile := filepath.Join(t.TempDir(), "go")
	script := writeScript(t, "remote", `printf '\nPlease authorize this client by visiting:\nhttps://login.example/a?b=c\n\n' >&2
while [ ! -e "$GO" ]; do sleep 0.05; done; echo 'Connected to remote server using StreamableHTTPClientTransport' >&2
`+scriptServer)
	h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "r", Target: stdio.Command{Path: script, Env: map[string]string{"GO": goFile}}})
	u := h.Upstream("r")
	polltest.Until(t, "it needs a login", func() bool {
		s := u.State()
		return s.Status == hub.NeedsLogin && s.LoginURL == "https://login.example/a?b=c"
	})
	if _, err := call(t, u, ""); err == nil || !strings.Contains(err.Error(), "needs login: it waits until you have logged in at https://login.example/a?b=c") {
		t.Errorf("a call fails with %v", err)
	}
	if err := os.WriteFile(goFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "it is ready", func() bool { s := u.State(); return s.Status == hub.Ready && s.LoginURL == "" })
}
