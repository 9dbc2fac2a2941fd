package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/install"
)

// startRegistry starts a registry that answers as the official one: pages with cursors, names that
// are escaped in paths, and errors in JSON.
func startRegistry(t *testing.T, documents ...string) (*Client, *atomic.Int32) {
	t.Helper()
	requests := new(atomic.Int32)
	entry := func(document string) map[string]any {
		return map[string]any{"server": json.RawMessage(document), "_meta": map[string]any{"io.modelcontextprotocol.registry/official": map[string]any{
			"status": "active", "publishedAt": "2025-12-01T10:30:00Z", "isLatest": true}}}
	}
	nameOf := func(document string) string {
		var s Server
		if err := json.Unmarshal([]byte(document), &s); err != nil {
			t.Error(err)
		}
		return s.Name
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		var found []any
		next := ""
		for _, d := range documents {
			name := nameOf(d)
			if !strings.Contains(name, r.FormValue("search")) || name <= r.FormValue("cursor") {
				continue
			}
			if len(found) == 2 { // a page
				break
			}
			found = append(found, entry(d))
			next = name
		}
		if len(found) < 2 {
			next = ""
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"servers": found, "metadata": map[string]any{"nextCursor": next, "count": len(found)}})
	})
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		for _, d := range documents {
			if nameOf(d) == r.PathValue("name") && (r.PathValue("version") == "latest" || strings.Contains(d, `"version":"`+r.PathValue("version")+`"`)) {
				_ = json.NewEncoder(w).Encode(entry(d))
				return
			}
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"title":"Not Found","status":404,"detail":"Server not found"}`))
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return &Client{Base: web.URL, HTTP: install.NewHTTPClient()}, requests
}

func document(name, rest string) string {
	return `{"name":"` + name + `","description":"About ` + name + `.","version":"1.2.3",` + rest + `}`
}

const npmPackage = `"packages":[{"registryType":"npm","identifier":"@acme/weather","version":"1.2.3","transport":{"type":"stdio"}}]`

func TestSearchFollowsPages(t *testing.T) {
	t.Parallel()
	c, requests := startRegistry(t, document("a.b/weather1", npmPackage), document("a.b/weather2", npmPackage), document("a.b/weather3", npmPackage),
		document("a.b/weather4", npmPackage), document("z.b/other", npmPackage))
	found, more, err := c.Search(t.Context(), []string{"weather"}, 10)
	if err != nil || len(found) != 4 || more {
		t.Errorf("%d servers, %v, %v", len(found), more, err)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	found, more, err = c.Search(t.Context(), []string{"weather", "ABOUT", "r3"}, 10)
	if err != nil || len(found) != 1 || found[0].Server.Name != "a.b/weather3" || more {
		t.Errorf("%+v, %v, %v", found, more, err)
	}
	found, more, err = c.Search(t.Context(), []string{"weather"}, 3)
	if err != nil || len(found) != 3 || !more {
		t.Errorf("%d servers, %v, %v", len(found), more, err)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	c, _ := startRegistry(t, document("io.github.acme/weather", npmPackage))
	for version, wrong := range map[string]bool{"": false, "1.2.3": false, "9.9.9": true} {
		e, err := c.Get(t.Context(), "io.github.acme/weather", version)
		if errors.Is(err, ErrUnknown) != wrong || !wrong && (err != nil || e.Server.Version != "1.2.3" || e.Status != "active") {
			t.Errorf("version %q: %+v, %v", version, e, err)
		}
	}
}

// Answers are kept: young ones save a request, old ones serve while the registry is away.
func TestAnswersAreKept(t *testing.T) {
	t.Parallel()
	c, requests := startRegistry(t, document("a.b/weather", npmPackage))
	c.Folder = filepath.Join(t.TempDir(), "kept")
	var stale []time.Duration
	c.Stale = func(age time.Duration, err error) {
		if err == nil {
			t.Error("no reason")
		}
		stale = append(stale, age)
	}
	get := func(want error) {
		t.Helper()
		if _, err := c.Get(t.Context(), "a.b/weather", ""); want == nil && err != nil || want != nil && err == nil {
			t.Errorf("%v, want %v", err, want)
		}
	}
	get(nil)
	get(nil)
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	files, err := filepath.Glob(c.Folder + "/*.json")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	reachable := c.HTTP
	c.HTTP = &http.Client{Transport: failing{}}
	get(nil)
	if len(stale) != 1 || stale[0] < time.Hour {
		t.Errorf("stale answers: %v", stale)
	}
	c.HTTP = reachable
	get(nil)
	if n := requests.Load(); n != 2 || len(stale) != 1 {
		t.Errorf("%d requests, %d stale answers", n, len(stale))
	}
	c.HTTP = &http.Client{Transport: failing{}}
	var unreachable *UnreachableError
	if _, err := c.Get(t.Context(), "a.b/other", ""); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no network") {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no network") }

// Addresses that are no registry, and answers that are too large, are named.
func TestNoRegistry(t *testing.T) {
	t.Parallel()
	for says, handler := range map[string]http.HandlerFunc{
		"is no MCP registry: its answer": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"is no MCP registry: it has no":  http.NotFound,
		"larger than 8 MiB":              func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxAnswer+2)) },
		"refuses the request: 403":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"cannot be reached: 503":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"answered with the server": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"server":` + document("x.y/z", npmPackage) + `}`))
		},
	} {
		web := httptest.NewServer(handler)
		c := &Client{Base: web.URL, HTTP: install.NewHTTPClient()}
		if _, err := c.Get(context.Background(), "a.b/c", ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		web.Close()
	}
}

// wayOf returns the only way of a document.
func wayOf(t *testing.T, rest string) Way {
	t.Helper()
	e, err := Parse([]byte(document("io.github.acme/weather", rest)))
	if err != nil {
		t.Fatal(err)
	}
	ways := e.Ways()
	if len(ways) != 1 {
		t.Fatalf("%d ways", len(ways))
	}
	return ways[0]
}

// Documents become command lines with one version, the user's values, and nothing for a shell.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		document string
		given    install.Values
		want     string // the words; then the environment
	}{
		"npm": {`"packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org","identifier":"@acme/weather","version":"1.2.3",
			"transport":{"type":"stdio"},"packageArguments":[{"type":"positional","valueHint":"city","isRequired":true},
			{"type":"named","name":"--unit","value":"{unit}","variables":{"unit":{"default":"C","choices":["C","F"]}}},{"type":"named","name":"--quiet"}],
			"environmentVariables":[{"name":"API_KEY","isRequired":true,"isSecret":true},{"name":"LEVEL","default":"info"},{"name":"OTHER"}]}]`,
			install.Values{"city": {"Oslo; rm -rf /"}, "unit": {"F"}},
			"npx|-y|@acme/weather@1.2.3|Oslo; rm -rf /|--unit|F|--quiet|API_KEY=${API_KEY}|LEVEL=info"},
		"another npm registry": {`"packages":[{"registryType":"npm","registryBaseUrl":"https://npm.acme.example","identifier":"w","version":"1.0.0","transport":{"type":"stdio"},
			"runtimeArguments":[{"type":"named","name":"--yes"}]}]`,
			nil, "npx|--yes|w@1.0.0|npm_config_registry=https://npm.acme.example"},
		"pypi": {`"packages":[{"registryType":"pypi","identifier":"weather-mcp","version":"0.5.0","transport":{"type":"stdio"},"runtimeHint":"uvx"}]`, nil, "uvx|weather-mcp@0.5.0"},
		"oci": {`"packages":[{"registryType":"oci","identifier":"docker.io/acme/weather","version":"1.0.2","transport":{"type":"stdio"},
			"runtimeArguments":[{"type":"named","name":"--mount","value":"type=bind,src={src},dst=/data","variables":{"src":{"isRequired":true,"format":"filepath"}}}],
			"environmentVariables":[{"name":"TOKEN","value":"Bearer {key}","variables":{"key":{"isRequired":true,"isSecret":true}}}]}]`,
			install.Values{"src": {"/home/me"}}, "docker|run|-i|--rm|-e|TOKEN|--mount|type=bind,src=/home/me,dst=/data|docker.io/acme/weather:1.0.2|TOKEN=Bearer ${KEY}"},
		"oci with a tag": {`"packages":[{"registryType":"oci","identifier":"ghcr.io/acme/weather:2.0","transport":{"type":"stdio"}}]`, nil, "docker|run|-i|--rm|ghcr.io/acme/weather:2.0"},
		"nuget":          {`"packages":[{"registryType":"nuget","identifier":"Acme.Weather","version":"1.0.0","transport":{"type":"stdio"},"packageArguments":[{"type":"positional","value":"mcp"}]}]`, nil, "dnx|Acme.Weather@1.0.0|--yes|--|mcp"},
		"repeated":       {`"packages":[{"registryType":"npm","identifier":"w","version":"1.0.0","transport":{"type":"stdio"},"packageArguments":[{"type":"named","name":"--dir","isRepeated":true,"isRequired":true}]}]`, install.Values{"dir": {"a", "b"}}, "npx|-y|w@1.0.0|--dir|a|--dir|b"},
		"no variables":   {`"packages":[{"registryType":"npm","identifier":"w","version":"1.0.0","transport":{"type":"stdio"},"packageArguments":[{"type":"positional","value":"${file:/etc/passwd} {x}"}]}]`, nil, "npx|-y|w@1.0.0|$${file:/etc/passwd} {x}"},
		"snake case":     {`"packages":[{"registry_name":"npm","name":"w","version":"1.0.0","package_arguments":[{"type":"positional","value_hint":"dir","is_required":true}],"environment_variables":[{"name":"a_b","value":"1"}]}]`, install.Values{"dir": {"x"}}, "npx|-y|w@1.0.0|x|a_b=1"},
	} {
		way := wayOf(t, tt.document)
		if way.Unsupported != "" {
			t.Errorf("%s: %s", name, way.Unsupported)
			continue
		}
		v, missing, err := way.Fill(tt.given)
		if err != nil || len(missing) > 0 {
			t.Errorf("%s: missing %v, %v", name, missing, err)
			continue
		}
		spec := way.Build(v)
		words := append([]string{spec.Command}, spec.Args...)
		var env []string
		for name, value := range spec.Env {
			env = append(env, name+"="+value)
		}
		slices.Sort(env)
		if got := strings.Join(append(words, env...), "|"); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tt.want)
		}
	}
}

func TestRemote(t *testing.T) {
	t.Parallel()
	way := wayOf(t, `"remotes":[{"type":"streamable-http","url":"https://{tenant}.acme.example/mcp","variables":{"tenant":{"isRequired":true}},
		"headers":[{"name":"X-Key","isRequired":true,"isSecret":true},{"name":"X-Fixed","value":"a"}]}]`)
	if _, missing, err := way.Fill(nil); err != nil || len(missing) != 1 || missing[0].Name != "tenant" {
		t.Errorf("missing %v, %v", missing, err)
	}
	v, _, err := way.Fill(install.Values{"tenant": {"oslo"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := way.Build(v); s.Kind != "http" || s.URL != "https://oslo.acme.example/mcp" || s.Headers["X-Key"] != "${X_KEY}" || s.Headers["X-Fixed"] != "a" {
		t.Errorf("%+v", s)
	}
}

// Values of a document that would run something else than a package of one version are refused.
func TestRefusedPackages(t *testing.T) {
	t.Parallel()
	for says, rest := range map[string]string{
		"not the name of a package":   `"packages":[{"registryType":"npm","identifier":"--eval=x","version":"1.0.0","transport":{"type":"stdio"}}]`,
		"is not one version":          `"packages":[{"registryType":"npm","identifier":"w","version":"^1.0.0","transport":{"type":"stdio"}}]`,
		"not fixed":                   `"packages":[{"registryType":"npm","identifier":"w","version":"latest","transport":{"type":"stdio"}}]`,
		"no packages of the type":     `"packages":[{"registryType":"cargo","identifier":"w","version":"1.0.0","transport":{"type":"stdio"}}]`,
		"serves streamable-http":      `"packages":[{"registryType":"npm","identifier":"w","version":"1.0.0","transport":{"type":"streamable-http","url":"http://127.0.0.1:1"}}]`,
		"no digest of the bundle":     `"packages":[{"registryType":"mcpb","identifier":"https://x.example/w.mcpb","transport":{"type":"stdio"}}]`,
		"is not SHA-256":              `"packages":[{"registryType":"npm","identifier":"w","version":"1.0.0","fileSha256":"12","transport":{"type":"stdio"}}]`,
		"cannot check the digest":     `"packages":[{"registryType":"pypi","identifier":"w","version":"1.0.0","fileSha256":"` + strings.Repeat("a", 64) + `","transport":{"type":"stdio"}}]`,
		"not an https URL":            `"remotes":[{"type":"sse","url":"file:///etc/passwd"}]`,
		"its transport \"x\" is unkn": `"remotes":[{"type":"x","url":"https://a.example"}]`,
	} {
		if way := wayOf(t, rest); !strings.Contains(way.Unsupported, says) {
			t.Errorf("%q, want %q", way.Unsupported, says)
		}
	}
	for says, text := range map[string]string{"no server.json": "[1]", "want one as": `{"name":"x"}`, "neither a package": document("a.b/c", `"icons":[]`)} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// FuzzParse checks that no document breaks the parser or the plans.
func FuzzParse(f *testing.F) {
	f.Add([]byte(document("a.b/c", npmPackage)))
	f.Add([]byte(`{"server":{"name":"a/b","packages":[{"registry_name":"npm","name":"x","runtime_arguments":[{"type":"named","name":"-v"}]}],"remotes":[{"transport_type":"streamable","url":"{x}"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		for _, w := range e.Ways() {
			if w.Unsupported == "" && w.Build == nil && w.Package.Type != "mcpb" {
				t.Error("a way without an entry")
			}
			if v, missing, err := w.Fill(nil); err == nil && len(missing) == 0 && w.Build != nil {
				w.Build(v)
			}
		}
	})
}

// An entry that cannot be used hides no other one.
func TestUnusableEntriesHideNone(t *testing.T) {
	t.Parallel()
	good := `{"server":` + document("a.b/weather", npmPackage) + `}`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"servers":[{"server":{},"_meta":{"io.modelcontextprotocol.registry/official":{"status":5}}},7,{"server":` +
			document("a.b/c; touch X #", npmPackage) + `},` + good + `],"metadata":{}}`))
	}))
	defer web.Close()
	c := &Client{Base: web.URL, HTTP: install.NewHTTPClient()}
	found, _, err := c.Search(t.Context(), nil, 10)
	if err != nil || len(found) != 1 || found[0].Server.Name != "a.b/weather" {
		t.Errorf("%+v, %v", found, err)
	}
}

// A registry that takes a request and answers nothing is as one that cannot be reached.
func TestSilentRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Base: "https://registry.example", HTTP: &http.Client{Transport: silent{}}}
		var unreachable *UnreachableError
		if _, err := c.Get(t.Context(), "a.b/c", ""); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "did not answer within 30s") {
			t.Errorf("%v", err)
		}
	})
}

type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// What a runner would make of names, versions, arguments and variables counts, not what they are
// called.
func TestRunnerWords(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{
		`"registryType":"npm","identifier":"w","version":"1.x"`, `"registryType":"npm","identifier":"w","version":"1"`, `"registryType":"npm","identifier":"w","version":"next"`,
		`"registryType":"npm","identifier":"https://evil.example/x.tgz","version":"1.0.0"`, `"registryType":"npm","identifier":"good@npm:evil","version":"1.0.0"`,
		`"registryType":"pypi","identifier":"git+https://evil.example/x","version":"1.0.0"`, `"registryType":"pypi","identifier":"w","version":"main"`,
		`"registryType":"oci","identifier":"evil/x:latest"`, `"registryType":"oci","identifier":"localhost:5000/x"`, `"registryType":"oci","identifier":"x","version":"1.0 --privileged"`,
		`"registryType":"npm","identifier":"w","version":"1.0.0","runtimeArguments":[{"type":"named","name":"--package","value":"evil"}]`,
		`"registryType":"pypi","identifier":"w","version":"1.0.0","runtimeArguments":[{"type":"positional","value":"--with=evil"}]`,
		`"registryType":"npm","identifier":"w","version":"1.0.0","environmentVariables":[{"name":"Npm_Config_Registry","value":"https://evil.example"}]`,
		`"registryType":"npm","identifier":"w","version":"1.0.0","environmentVariables":[{"name":"NODE_OPTIONS","value":"--require=/tmp/x"}]`,
	} {
		if way := wayOf(t, `"packages":[{`+rest+`,"transport":{"type":"stdio"}}]`); way.Unsupported == "" {
			t.Errorf("%s is run", rest)
		}
	}
	way := wayOf(t, `"packages":[{"registryType":"oci","identifier":"acme/x@sha256:`+strings.Repeat("a", 64)+`","transport":{"type":"stdio"},"runtimeArguments":[{"type":"named","name":"-v","value":"/:/host"},{"type":"positional","value":"--network=host"}]}]`)
	if way.Unsupported != "" || len(way.Warnings) != 2 {
		t.Errorf("%s, %q", way.Unsupported, way.Warnings)
	}
}
