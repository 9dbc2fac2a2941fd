package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/interop/oddservers"
)

func TestOddServers(t *testing.T) {
	folder, err := filepath.Abs("oddservers")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range oddservers.All {
		t.Run(strings.TrimSuffix(server.Script, filepath.Ext(server.Script)), func(t *testing.T) {
			t.Parallel()
			callOddServer(t, server, folder)
		})
	}
}

// callOddServer calls the tool of a server and checks the outcome.
func callOddServer(t *testing.T, server oddservers.Server, folder string) {
	c := newCLI(t)
	out := c.runWith(server.Command(folder), "call", "echo", "message=grüße aus Köln")
	said := out.stdout + out.stderr
	switch {
	case server.Fails == "" && (out.code != 0 || !strings.Contains(out.stdout, "grüße aus Köln")):
		t.Errorf("the call must work (%s), got exit code %d\nstdout: %s\nstderr: %s",
			server.Why, out.code, shorten(out.stdout), shorten(out.stderr))
	case server.Fails != "" && out.code == 0:
		t.Errorf("the call must fail (%s), got %s", server.Why, shorten(out.stdout))
	case server.Fails != "" && !regexp.MustCompile(server.Fails).MatchString(said):
		t.Errorf("the error must match %q (%s), got %s", server.Fails, server.Why, shorten(said))
	}
	if out.took > server.Limit {
		t.Errorf("the call took %v, want at most %v", out.took, server.Limit)
	}
}

// The table names all scripts in the folder, and no others.
func TestOddServersAreListed(t *testing.T) {
	listed := map[string]bool{"server.mjs": true, "oddservers.go": true}
	for _, server := range oddservers.All {
		listed[server.Script] = true
	}
	files, err := os.ReadDir("oddservers")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !listed[file.Name()] {
			t.Errorf("oddservers/%s is not in oddservers.All: add it", file.Name())
		}
		delete(listed, file.Name())
	}
	for name := range listed {
		t.Errorf("oddservers.All names %s, which does not exist", name)
	}
}
