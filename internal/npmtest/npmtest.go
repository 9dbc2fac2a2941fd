// Package npmtest is an npm registry for tests. It serves generated packages on loopback, so that
// npx installs a server without the network.
package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Package is the name of the served package. It has a program, which is an MCP server with the tool
// "hello", and depends on packages with many files.
const Package = "dowel-npmtest"

// Options configure a [Registry]. The zero value is a small package without scripts.
type Options struct {
	// Parts is the number of packages that the server depends on, and Files the number of files in
	// each.
	Parts, Files int
	// PostInstall is the script that npm runs after it has extracted the server.
	PostInstall string
	// OnRequest is called with the number of each request, from 1 on, before the answer; nil for
	// none. It is called concurrently.
	OnRequest func(n int)
}

// Registry is a running registry.
type Registry struct {
	URL  string
	opts Options

	requests atomic.Int64

	mu       sync.Mutex
	tarballs map[string][]byte
}

// Start starts a registry that ends with the test.
func Start(t testing.TB, o Options) *Registry {
	t.Helper()
	r := &Registry{opts: o, tarballs: map[string][]byte{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Env returns the variables that make npm use the registry and a cache below dir, and nothing of
// the user's.
func (r *Registry) Env(dir string) map[string]string {
	return map[string]string{
		"npm_config_registry": r.URL, "npm_config_cache": filepath.Join(dir, "npm"), "npm_config_userconfig": filepath.Join(dir, "npmrc"),
		"npm_config_update_notifier": "false", "npm_config_audit": "false", "npm_config_fund": "false",
		"npm_config_globalconfig": filepath.Join(dir, "global-npmrc"), "npm_config_fetch_retries": "0",
	}
}

// ServeHTTP answers with the description of a package or its tarball.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if n := r.requests.Add(1); r.opts.OnRequest != nil {
		r.opts.OnRequest(int(n))
	}
	name, _, isTarball := strings.Cut(strings.Trim(req.URL.Path, "/"), "/-/")
	if name != Package && !strings.HasPrefix(name, Package+"-part") {
		http.Error(w, `{"error":"not_found"}`, http.StatusNotFound)
		return
	}
	if !isTarball {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.describePackage(name)) // npm is gone if it fails
		return
	}
	_, _ = w.Write(r.tarball(name))
}

func (r *Registry) part(i int) string { return fmt.Sprintf("%s-part%d", Package, i) }

// manifest returns the package.json of a package.
func (r *Registry) manifest(name string) map[string]any {
	m := map[string]any{"name": name, "version": "1.0.0"}
	if name != Package {
		return m
	}
	parts := map[string]string{}
	for i := range r.opts.Parts {
		parts[r.part(i)] = "1.0.0"
	}
	m["bin"], m["dependencies"] = map[string]string{Package: "server.js"}, parts
	if r.opts.PostInstall != "" {
		m["scripts"] = map[string]string{"postinstall": r.opts.PostInstall}
		m["hasInstallScript"] = true
	}
	return m
}

// describePackage returns the registry's document about a package.
func (r *Registry) describePackage(name string) map[string]any {
	tarball := r.tarball(name)
	long, short := sha512.Sum512(tarball), sha1.Sum(tarball)
	m := r.manifest(name)
	m["dist"] = map[string]string{
		"tarball":   r.URL + "/" + name + "/-/" + name + "-1.0.0.tgz",
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(long[:]), "shasum": hex.EncodeToString(short[:]),
	}
	return map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": m}}
}

// tarball returns the tarball of a package, which is made once.
func (r *Registry) tarball(name string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tarballs[name] == nil {
		r.tarballs[name] = r.pack(name)
	}
	return r.tarballs[name]
}

func (r *Registry) pack(name string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	add := func(path, text string) {
		// A buffer takes every write.
		_ = files.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o755, Size: int64(len(text))})
		_, _ = io.WriteString(files, text)
	}
	manifest, _ := json.Marshal(r.manifest(name)) // of strings
	add("package.json", string(manifest))
	if name == Package {
		add("server.js", r.program())
	} else {
		for i := range r.opts.Files {
			add(fmt.Sprintf("lib/f%d.js", i), "// "+strings.Repeat("x", 2000))
		}
		add("index.js", fmt.Sprintf("for (let i = 0; i < %d; i++) require('./lib/f' + i + '.js')", r.opts.Files))
	}
	_ = files.Close()
	_ = zip.Close()
	return out.Bytes()
}

// program returns the server, which needs every file of every part.
func (r *Registry) program() string {
	var b strings.Builder
	b.WriteString("#!/usr/bin/env node\n")
	for i := range r.opts.Parts {
		fmt.Fprintf(&b, "require('%s')\n", r.part(i))
	}
	b.WriteString(`require('readline').createInterface({input: process.stdin}).on('line', line => {
	const m = JSON.parse(line)
	const results = {
		initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 'npmtest', version: '1'}},
		ping: {}, 'tools/list': {tools: [{name: 'hello', inputSchema: {type: 'object'}}]},
	}
	if (m.id === undefined) return
	const r = results[m.method]
	console.log(JSON.stringify(r ? {jsonrpc: '2.0', id: m.id, result: r} : {jsonrpc: '2.0', id: m.id, error: {code: -32601, message: 'unknown'}}))
})
`)
	return b.String()
}
