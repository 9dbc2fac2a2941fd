package layers

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Dependencies that a program gets only if it asks for them.
var (
	httpPackages = []string{"net", "net/http", "crypto/tls"}
	fileParsers  = []string{"github.com/goccy/go-yaml", "github.com/pelletier/go-toml/v2", "github.com/tailscale/hujson"}
	fileWatchers = []string{"github.com/fsnotify/fsnotify", "github.com/gofrs/flock"}
	loginStores  = []string{"github.com/gofrs/flock", "github.com/zalando/go-keyring"}
	taskEngines  = []string{"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go", "github.com/dowel-mcp/dowel/taskstore", "github.com/dowel-mcp/dowel/cluster"}
	validators   = []string{"github.com/santhosh-tekuri/jsonschema/v6"}
)

// TestLinkedPackages checks which packages the public packages link.
func TestLinkedPackages(t *testing.T) {
	for _, tt := range []struct {
		name    string
		roots   []string
		without []string
	}{
		{"server on standard streams", []string{"./server", "./transport/stdio", "./transport/memory"}, slices.Concat(httpPackages, validators, taskEngines)},
		{"server with access tokens", []string{"./server", "./auth/resource", "./transport/streamable"}, slices.Concat(fileParsers, loginStores, validators, taskEngines)},
		{"client with logins", []string{"./client", "./auth"}, slices.Concat(fileParsers, loginStores, validators, taskEngines)},
		{"hub", []string{"./hub"}, slices.Concat(fileParsers, fileWatchers, loginStores, validators, taskEngines)},
		{"gateway", []string{"./gateway"}, slices.Concat(fileParsers, fileWatchers, loginStores, validators, taskEngines)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			linked := goLines(t, repository, append([]string{"list", "-deps"}, tt.roots...)...)
			checkLinked(t, linked, module+strings.TrimPrefix(tt.roots[0], "./"), tt.without)
		})
	}
}

// userPrograms are programs of users, each in a module of its own, with the packages that they must
// not link and the modules that they need besides this one.
var userPrograms = []struct {
	name    string
	source  string
	without []string
	modules []string
}{
	{
		name: "server",
		source: `package main

import (
	"context"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

func main() {
	s := server.New("greeter", "1.0.0", nil)
	server.Tool(s, "greet", "Greets somebody.", func(_ context.Context, in struct{ Name string }) (string, error) {
		return "Hello, " + in.Name, nil
	})
	if err := stdio.Serve(context.Background(), s); err != nil {
		panic(err)
	}
}
`,
		without: slices.Concat(httpPackages, fileParsers, fileWatchers, validators, taskEngines),
		modules: []string{"github.com/go-json-experiment/json", "golang.org/x/sys", "golang.org/x/time"},
	},
	{
		name: "gateway",
		source: `package main

import (
	"context"
	"net/http"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func main() {
	h := hub.New(nil)
	defer h.Close()
	h.Apply([]hub.Definition{{Name: "files", Target: []string{"files-server", "."}}}, "the program starts")
	g := gateway.New(h, nil)
	defer g.Close()
	handler := streamable.Handler(g, nil)
	defer handler.Shutdown(context.Background())
	http.ListenAndServe("127.0.0.1:7800", handler)
}
`,
		without: slices.Concat(fileParsers, fileWatchers, validators, taskEngines),
		modules: []string{"github.com/coder/websocket", "github.com/go-json-experiment/json", "golang.org/x/sys", "golang.org/x/time"},
	},
}

// TestUserPrograms builds programs outside the module and checks which packages they link, and
// which modules those packages come from.
func TestUserPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range userPrograms {
		t.Run(p.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, text := range map[string]string{
				"go.mod":  "module example.com/" + p.name + "\n\ngo " + goVersion(t) + "\n\nrequire " + strings.TrimSuffix(module, "/") + " v0.0.0\n\nreplace " + strings.TrimSuffix(module, "/") + " => " + root + "\n",
				"go.sum":  string(sums),
				"main.go": p.source,
			} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			goLines(t, folder, "build", "-o", os.DevNull, ".")
			checkLinked(t, goLines(t, folder, "list", "-deps", "."), "example.com/"+p.name, p.without)
			needed := goLines(t, folder, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".")
			slices.Sort(needed)
			needed = slices.Compact(needed)
			want := append([]string{strings.TrimSuffix(module, "/")}, p.modules...)
			if slices.Sort(want); !slices.Equal(needed, want) {
				t.Errorf("the program needs the modules %v, want %v", needed, want)
			}
		})
	}
}

// goVersion returns the version of the module's go line.
func goVersion(t *testing.T) string {
	t.Helper()
	return goLines(t, repository, "list", "-m", "-f", "{{.GoVersion}}")[0]
}

// repository is the module's root folder.
const repository = "../.."

// goLines runs the go command in a folder, without network, and returns the words that it prints.
// Outside the repository the command may complete go.mod.
func goLines(t *testing.T, folder string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if folder != repository {
		cmd.Env = append(cmd.Env, "GOFLAGS=-mod=mod")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.Fields(string(out))
}

// checkLinked checks that root is among the linked packages and that no package of without is.
func checkLinked(t *testing.T, linked []string, root string, without []string) {
	t.Helper()
	if !slices.Contains(linked, root) {
		t.Fatalf("%s is not among the linked packages: %v", root, linked)
	}
	for _, path := range without {
		if slices.ContainsFunc(linked, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") && strings.Contains(path, ".") }) {
			t.Errorf("%s is linked", path)
		}
	}
}
