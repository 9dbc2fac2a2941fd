package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/freeport"
)

// hangTimeout bounds waits for npm and for processes. Only a program that hangs reaches it.
const hangTimeout = 5 * time.Minute

// TestNPX runs dowel through npx in an empty folder, with a registry that serves only the packages
// of a release.
func TestNPX(t *testing.T) {
	tarballs := buildPackages(t)
	registry := httptest.NewServer(newRegistry(t, tarballs))
	t.Cleanup(registry.Close)
	folder := t.TempDir()
	env := append(os.Environ(), "HOME="+folder, "npm_config_cache="+filepath.Join(folder, "cache"), "npm_config_registry="+registry.URL,
		"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false")

	version := npxCommand(t, folder, env, "version", "--json")
	out, err := version.Output()
	if err != nil {
		t.Fatalf("npx dowel version: %v\n%s\n%s", err, out, exitStderr(err))
	}
	var built struct{ Version, Platform string }
	if err := json.Unmarshal(out, &built); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := runtime.GOOS + "/" + runtime.GOARCH; built.Platform != want || built.Version != "1.2.3" {
		t.Errorf("npx ran dowel %s for %s, want 1.2.3 for %s", built.Version, built.Platform, want)
	}

	unknown := npxCommand(t, folder, env, "nonsense")
	if err := unknown.Run(); unknown.ProcessState.ExitCode() != 2 {
		t.Errorf("npx dowel nonsense: %v, want exit status 2 for a usage error", err)
	}
	checkServers(t, folder, env)
	checkUp(t, folder, env)
}

// checkServers lists the tools of a server program in two ways: by its own command, and by dowel
// serve, which finds the command that npm has installed.
func checkServers(t *testing.T, folder string, env []string) {
	install := exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--loglevel=error", "dowel", "@dowel-mcp/servers")
	install.Dir, install.Env = folder, env
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	bin := filepath.Join(folder, "node_modules", ".bin")
	env = append(slices.Clip(env), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, server := range [][]string{{"dowel-data"}, {"dowel", "serve", "data"}} {
		list := exec.CommandContext(t.Context(), filepath.Join(bin, "dowel"), append([]string{"tools", "--"}, server...)...)
		list.Dir, list.Env = folder, env
		if out, err := list.Output(); err != nil || !strings.Contains(string(out), "analyze_csv") {
			t.Errorf("tools of %q: %v\n%s%s", server, err, out, exitStderr(err))
		}
	}
}

// checkUp starts the gateway through npx, waits for its answer and ends it with SIGTERM.
func checkUp(t *testing.T, folder string, env []string) {
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	up := npxCommand(t, folder, env, "up", "--http", address, "--project", folder)
	var stderr bytes.Buffer
	up.Stderr = &stderr
	up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), hangTimeout)
	defer cancel()
	if err := awaitAnswer(ctx, "http://"+address+"/", ended); err != nil {
		_ = syscall.Kill(-up.Process.Pid, syscall.SIGKILL)
		<-ended
		t.Fatalf("npx dowel up: %v\n%s", err, &stderr)
	}
	if err := syscall.Kill(-up.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		_ = syscall.Kill(-up.Process.Pid, syscall.SIGKILL)
		t.Fatalf("dowel up is still running after SIGTERM\n%s", &stderr)
	}
	if response, err := http.Get("http://" + address + "/"); err == nil {
		response.Body.Close()
		t.Error("the gateway still answers after npx has ended")
	}
}

// TestLauncherWithoutBinary runs the launcher without the optional dependency that has the binary.
func TestLauncherWithoutBinary(t *testing.T) {
	requireNPM(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "launch.js"), npmLauncher, 0o600); err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "-e", `require("./launch.js").launch("dowel", "@dowel-mcp/")`)
	node.Dir = folder
	out, err := node.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not installed") || !strings.Contains(string(out), "--omit=optional") {
		t.Errorf("want an error that says which package is missing and what to do: %v\n%s", err, out)
	}
}

func npxCommand(t *testing.T, folder string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "npx", append([]string{"--yes", "dowel"}, args...)...)
	cmd.Dir, cmd.Env = folder, env
	return cmd
}

func exitStderr(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}

func requireNPM(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm", "npx"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

// buildPackages returns the tarballs for this platform and for another one, which npm must not
// install.
func buildPackages(t *testing.T) []string {
	requireNPM(t)
	host := target{goos: runtime.GOOS, goarch: runtime.GOARCH}
	r := &release{root: "../..", version: "1.2.3", out: t.TempDir(), log: t.Output(), servers: []string{host.String()}}
	host.binary = filepath.Join(t.TempDir(), host.fileName("dowel"))
	err := r.compile(t.Context(), host)
	if err == nil {
		host.servers, err = r.compileServers(t.Context(), host, t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	other := target{goos: "windows", goarch: "arm64", binary: host.binary, servers: host.servers} // never runs
	if err := r.writeNPM(t.Context(), []target{host, other}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	tarballs, err := filepath.Glob(filepath.Join(r.out, "npm", "*.tgz"))
	if err != nil || len(tarballs) != 6 {
		t.Fatalf("%v %v, want six packages", tarballs, err)
	}
	return tarballs
}

// newRegistry serves tarballs as the npm registry does: a document for each package contains the
// address of its tarball.
func newRegistry(t *testing.T, tarballs []string) http.Handler {
	mux := http.NewServeMux()
	var names []string
	for _, name := range tarballs {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		manifest := readManifest(t, content)
		packageName := manifest["name"].(string)
		names = append(names, packageName)
		file := "/tarballs/" + filepath.Base(name)
		mux.HandleFunc("GET "+file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
		sum := sha512.Sum512(content)
		mux.HandleFunc("GET /"+strings.ReplaceAll(packageName, "/", "%2f"), func(w http.ResponseWriter, request *http.Request) {
			version := manifest["version"].(string)
			manifest["dist"] = map[string]any{"tarball": "http://" + request.Host + file, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			_ = json.NewEncoder(w).Encode(map[string]any{"name": packageName, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: manifest}})
		})
	}
	if !slices.Contains(names, "dowel") {
		t.Fatalf("the packages are %q, want dowel among them", names)
	}
	return mux
}

func readManifest(t *testing.T, tarball []byte) map[string]any {
	compressed, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("package.json: %v", err)
		}
		if header.Name != "package/package.json" {
			continue
		}
		content, err := io.ReadAll(archive)
		var manifest map[string]any
		if err == nil {
			err = json.Unmarshal(content, &manifest)
		}
		if err != nil {
			t.Fatal(err)
		}
		return manifest
	}
}
