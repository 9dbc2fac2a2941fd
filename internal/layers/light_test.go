package layers

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A server on standard streams must be small and start quickly: it must not link packages for HTTP
// or TLS, or packages with much work to do at initialization.
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
		t.Errorf("go list printed an unexpected list of packages: %s", out)
	}
}
