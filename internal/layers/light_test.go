package layers

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A server on standard streams is small and quick to start: it links nothing that speaks HTTP or TLS, and nothing that has work
// to do when a program begins.
func TestServersOnStdioAreLight(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./server", "./transport/stdio", "./transport/memory")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	for _, heavy := range []string{"net", "net/http", "crypto/tls", "github.com/santhosh-tekuri/jsonschema/v6"} {
		if slices.Contains(linked, heavy) {
			t.Errorf("%s is linked into a server on standard streams", heavy)
		}
	}
	if !slices.Contains(linked, module+"server") {
		t.Errorf("what is linked is not known: %s", out)
	}
}
