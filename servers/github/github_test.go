package github

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

const issueJSON = `{"number":7,"title":"It breaks","state":"open","user":{"login":"ada"},"created_at":"2026-01-02T03:04:05Z","html_url":"https://github.com/o/r/issues/7","labels":[{"name":"bug"}],"body":"Details"}`

// fakeGitHub answers as GitHub does. Requests without the token are refused.
func fakeGitHub(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	answer := func(pattern string, status int, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				status, body = http.StatusUnauthorized, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /api/v3/repos/o/r/issues", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "2" {
			fmt.Fprint(w, `[{"number":1,"title":"a pull request","pull_request":{"url":"x"}}]`)
			return
		}
		w.Header().Set("Link", `<`+server.URL+`/api/v3/repos/o/r/issues?page=2>; rel="next"`)
		fmt.Fprint(w, "["+issueJSON+"]")
	})
	answer("GET /api/v3/repos/o/r/issues/7", 200, issueJSON)
	answer("GET /api/v3/repos/o/r/issues/7/comments", 200, `[{"user":{"login":"bob"},"body":"Me too","created_at":"2026-01-03T00:00:00Z"}]`)
	answer("GET /api/v3/repos/o/r/issues/404", 404, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}`)
	answer("POST /api/v3/repos/o/r/issues/7/comments", 201, `{"html_url":"https://github.com/o/r/issues/7#1"}`)
	answer("POST /api/v3/repos/o/r/issues", 201, issueJSON)
	answer("POST /api/v3/repos/o/invalid/issues", 422, `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"title","code":"missing_field"}]}`)
	answer("GET /api/v3/repos/o/r/contents/docs/a.md", 200, `{"type":"file","encoding":"base64","size":5,"content":"`+base64.StdEncoding.EncodeToString([]byte("hello"))+`"}`)
	answer("GET /api/v3/repos/o/r/contents/logo.png", 200, `{"type":"file","encoding":"base64","size":2,"content":"`+base64.StdEncoding.EncodeToString([]byte{0xFF, 0})+`"}`)
	answer("GET /api/v3/repos/o/r/contents/big", 200, `{"type":"file","encoding":"none","size":2000000,"content":""}`)
	answer("GET /api/v3/repos/o/r/contents/docs", 200, `[{"type":"file","name":"a.md"},{"type":"dir","name":"api"},{"type":"file","name":"b.md"}]`)
	answer("GET /api/v3/repos/o/endless/issues/1", 200, `{"body":"`+strings.Repeat("x", maxBody)+`"}`)
	mux.HandleFunc("GET /api/v3/repos/o/limited/issues/1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "60")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", "4102444800")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message":"API rate limit exceeded for 192.0.2.1."}`)
	})
	mux.HandleFunc("GET /api/v3/repos/o/moved/issues/1", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusMovedPermanently)
	})
	return server
}

func dial(t *testing.T, o Options, revision mcp.Revision) *client.Client {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Revision: revision, Tap: mcptest.ClientTap(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

// call returns the result of a tool as JSON or text, or its error.
func call(t *testing.T, c *client.Client, tool, arguments string) string {
	t.Helper()
	out, err := client.Call[json.RawMessage](t.Context(), c, tool, json.RawMessage(arguments))
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		return "error: " + failed.Result.Content[0].Text
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTools(t *testing.T) {
	api := fakeGitHub(t)
	for _, revision := range mcp.Revisions() {
		c := dial(t, Options{URL: api.URL + "/api/v3", Token: "secret"}, revision)
		for _, step := range []struct{ tool, arguments, want string }{
			{"list_issues", `{"owner":"o","repo":"r"}`, `"next":2`},
			{"list_issues", `{"owner":"o","repo":"r","page":2}`, `{"issues":[],"next":0}`},
			{"read_issue", `{"owner":"o","repo":"r","number":7}`, `"comments":[{"author":"bob","created":"2026-01-03T00:00:00Z","body":"Me too"}]`},
			{"create_issue", `{"owner":"o","repo":"r","title":"It breaks","labels":["bug"]}`, `"labels":["bug"]`},
			{"comment_issue", `{"owner":"o","repo":"r","number":7,"body":"Thanks"}`, "issues/7#1"},
			{"read_file", `{"owner":"o","repo":"r","path":"docs/a.md"}`, "hello"},
			{"read_file", `{"owner":"o","repo":"r","path":"docs"}`, "error: docs is a folder"},
			{"read_file", `{"owner":"o","repo":"r","path":"big"}`, "2000000 bytes"},
			{"read_file", `{"owner":"o","repo":"r","path":"logo.png"}`, "not text"},
			{"read_file", `{"owner":"o","repo":"r","path":"../../x"}`, "error: "},
			{"read_file", `{"owner":"o","repo":"..","path":"x"}`, "error: "},
			{"read_issue", `{"owner":"o","repo":"r","number":404}`, "error: GitHub answers 404: Not Found"},
			{"create_issue", `{"owner":"o","repo":"invalid","title":"x"}`, "title missing_field"},
			{"read_issue", `{"owner":"o","repo":"endless","number":1}`, "longer than"},
			{"read_issue", `{"owner":"o","repo":"moved","number":1}`, "redirects to elsewhere.invalid"},
			{"read_issue", `{"owner":"o","repo":"limited","number":1}`, "used up until 2100-01-01"},
		} {
			if got := call(t, c, step.tool, step.arguments); !strings.Contains(got, step.want) {
				t.Errorf("%s %s in %s: got %.300s, want %s", step.tool, step.arguments, revision, got, step.want)
			}
		}
	}
}

func TestResource(t *testing.T) {
	api := fakeGitHub(t)
	c := dial(t, Options{URL: api.URL + "/api/v3/", Token: "secret"}, mcp.Revisions()[0])
	file, err := c.ReadResource(t.Context(), "github:///o/r/docs/a.md")
	if err != nil || file.Contents[0].Text != "hello" {
		t.Errorf("%v, %v", file, err)
	}
	if _, err := c.ReadResource(t.Context(), "github:///o/r/absent"); err == nil {
		t.Error("a file that does not exist can be read")
	}
	if file, err := c.ReadResource(t.Context(), "github:///o/r/logo.png"); err != nil || string(file.Contents[0].Blob) != "\xFF\x00" {
		t.Errorf("a binary file: %v, %v", file, err)
	}
	for _, uri := range []string{"github:///../r/docs/a.md", "github:///o/..%2F..%2Frepos%2Fo%2Fr/docs/a.md"} {
		if _, err := c.ReadResource(t.Context(), uri); err == nil {
			t.Errorf("%s leads to another part of the API", uri)
		}
	}
	const template = "github:///{owner}/{repo}/{+path}"
	for typed, want := range map[string]string{"docs/a": "[docs/a.md docs/api/]", "docs/": "[docs/a.md docs/api/ docs/b.md]"} {
		found, err := c.Complete(t.Context(), mcp.ResourceRef(template), "path", typed, map[string]string{"owner": "o", "repo": "r"})
		if err != nil || fmt.Sprint(found.Values) != want {
			t.Errorf("%s: %v, %v", typed, found, err)
		}
	}
	if found, err := c.Complete(t.Context(), mcp.ResourceRef(template), "path", "docs/", nil); err != nil || len(found.Values) != 0 {
		t.Errorf("without a repository: %v, %v", found, err)
	}
}

func TestReadOnlyAndWrongToken(t *testing.T) {
	api := fakeGitHub(t)
	c := dial(t, Options{URL: api.URL + "/api/v3", Token: "wrong", ReadOnly: true}, mcp.Revisions()[0])
	for tool, err := range c.Tools(t.Context()) {
		if err != nil || strings.HasPrefix(tool.Name, "create") || strings.HasPrefix(tool.Name, "comment") {
			t.Errorf("%v, %v", tool.Name, err)
		}
	}
	if got := call(t, c, "read_issue", `{"owner":"o","repo":"r","number":7}`); !strings.Contains(got, "set GITHUB_TOKEN") || strings.Contains(got, "wrong") {
		t.Error(got)
	}
	if _, err := New(Options{URL: "github.example.com"}); err == nil {
		t.Error("a URL without a scheme is accepted")
	}
}

func TestFindToken(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "gh"), []byte("#!/bin/sh\necho from-$1-$2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	t.Setenv("GITHUB_TOKEN", "")
	t.Setenv("GH_TOKEN", "")
	if got := FindToken(t.Context()); got != "from-auth-token" {
		t.Errorf("token of gh: %q", got)
	}
	t.Setenv("GH_TOKEN", "variable")
	if got := FindToken(t.Context()); got != "variable" {
		t.Errorf("token of GH_TOKEN: %q", got)
	}
	t.Setenv("GH_TOKEN", "")
	t.Setenv("PATH", t.TempDir())
	if got := FindToken(t.Context()); got != "" {
		t.Errorf("without gh: %q", got)
	}
}
