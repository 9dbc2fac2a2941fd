package interop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// binary is a program that is built once, before the tests. A failure is reported by the tests that
// need it.
type binary struct {
	folder, pkg string // the package, as go build run in folder names it
	path        string
	err         error
}

var binaries = map[string]*binary{
	"dowel":        {folder: "..", pkg: "./cmd/dowel"},
	"gosdk-server": {folder: ".", pkg: "./peers/gosdk-server"},
	"gosdk-client": {folder: ".", pkg: "./peers/gosdk-client"},
	"gosdk-resume": {folder: ".", pkg: "./peers/gosdk-resume"},
	"gosdk-tasks":  {folder: ".", pkg: "./peers/gosdk-tasks"},
	"mcpgo-server": {folder: ".", pkg: "./peers/mcpgo-server"},
	"mcpgo-client": {folder: ".", pkg: "./peers/mcpgo-client"},
	"dowel-client": {folder: ".", pkg: "./peers/dowel-client"},
	// The official Go SDK's own server for the conformance suite.
	"everything-server": {folder: ".", pkg: "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"},
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "dowel-interop")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, b := range binaries {
		b.path = filepath.Join(folder, name)
		build := exec.Command("go", "build", "-o", b.path, b.pkg)
		build.Dir = b.folder
		if output, err := build.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("building %s: %w\n%s", b.pkg, err, output)
		}
	}
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = parallel.Value.Set("8") // the tests mostly wait
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// binaryPath returns the path of a binary.
func binaryPath(t *testing.T, name string) string {
	t.Helper()
	b := binaries[name]
	if b == nil {
		t.Fatalf("%s is not in binaries", name)
	}
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// npmPath returns the path of a program of the packages from npm.
func npmPath(t *testing.T, program string) string {
	t.Helper()
	return requireFile(t, filepath.Join("node", "node_modules", ".bin", program))
}

// scriptPath returns the path of one of the Node clients.
func scriptPath(t *testing.T, name string) string {
	t.Helper()
	requireFile(t, filepath.Join("node", "node_modules"))
	return requireFile(t, filepath.Join("node", name))
}

func requireFile(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("the npm packages are missing: run make -C .. interop-deps (%v)", err)
	}
	return path
}
