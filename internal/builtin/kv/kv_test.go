package kv

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
)

func containsSecret(err error) bool { return strings.Contains(err.Error(), "secret") }

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}

// forRevisions runs a test with a client of each revision, in a bubble.
func forRevisions(t *testing.T, opts server.Options, test func(t *testing.T, s *Server, c *client.Client)) {
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Memory(), opts)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				c := dial(t, s, client.Options{Wire: client.Wire{Revision: revision}})
				defer c.Close()
				test(t, s, c)
			})
		})
	}
}

func dial(t *testing.T, s *Server, opts client.Options) *client.Client {
	t.Helper()
	opts.Wire.Tap = mcptest.ClientTap(t)
	c, err := client.Dial(t.Context(), s, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call calls a tool and returns its text, which begins with "error: " where the tool failed.
func call(t *testing.T, c *client.Client, tool string, in any) string {
	t.Helper()
	out, err := client.Call[string](t.Context(), c, tool, in)
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		return "error: " + failed.Result.Content[0].Text
	}
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return out
}

type args map[string]any

func TestTools(t *testing.T) {
	forRevisions(t, server.Options{}, func(t *testing.T, _ *Server, c *client.Client) {
		steps := []struct {
			tool string
			in   args
			want string // a part of the text
		}{
			{"get", args{"key": "a"}, `error: the key "a" does not exist`},
			{"set", args{"key": "a", "value": "one"}, `stored the new key "a"`},
			{"set", args{"key": "a", "value": "two\n"}, `replaced the value of "a"`},
			{"get", args{"key": "a"}, "two\n"},
			{"set", args{"key": "b", "value": "", "ttl": 90}, `stored the new key "b", for 1m30s`},
			{"list", args{}, `{"keys":["a","b"],"more":false}`},
			{"list", args{"prefix": "b"}, `{"keys":["b"],"more":false}`},
			{"list", args{"limit": 1}, `{"keys":["a"],"more":true}`},
			{"list", args{"limit": 1, "after": "a"}, `{"keys":["b"],"more":false}`},
			{"list", args{"limit": 1001}, "error: "},
			{"delete", args{"key": "a"}, `deleted "a"`},
			{"delete", args{"key": "a"}, `the key "a" did not exist`},
			{"get", args{}, "error: "},
			{"get", args{"key": ""}, "error: "},
			{"set", args{"key": "a"}, "error: "},
			{"set", args{"key": "a", "value": "x", "ttl": 0}, "error: "},
			{"set", args{"key": "a", "value": "a\x00b"}, "error: the value is not text: encode binary data"},
			{"set", args{"key": "a\x00b", "value": "x"}, "error: the key is not text"},
			{"set", args{"key": strings.Repeat("é", 257), "value": "x"}, "error: the key has 514 bytes"},
			{"set", args{"key": "a", "value": strings.Repeat("é", 1<<19+1)}, "error: the value has 1048578 bytes"},
			{"list", args{}, `{"keys":["b"],"more":false}`},
		}
		for _, step := range steps {
			got := call(t, c, step.tool, step.in)
			if !strings.HasPrefix(got, "error: ") && strings.HasPrefix(step.want, "error: ") || !strings.Contains(got, step.want) {
				t.Errorf("%s %.80v: got %.200q, want %q", step.tool, step.in, got, step.want)
			}
		}
	})
}

// oddKeys have whatever a URI treats in a special way.
var oddKeys = []string{"plain", "user:1", "a/b", "../etc", "a b+c", "100%", "?q=1&r#f", "ünï", "日本", "{x}", "new\nline", "~-._", `"q"`, "."}

func TestResources(t *testing.T) {
	forRevisions(t, server.Options{PageSize: 3}, func(t *testing.T, _ *Server, c *client.Client) {
		for _, key := range oddKeys {
			call(t, c, "set", args{"key": key, "value": "value of " + key})
		}
		listed, err := client.All(c.Resources(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]string{}
		for _, r := range listed {
			result, err := c.ReadResource(t.Context(), r.URI)
			if err != nil {
				t.Errorf("%s: %v", r.URI, err)
				continue
			}
			got := result.Contents[0]
			if got.URI != r.URI || got.MIMEType != "text/plain" || r.URI != URI(r.Name) {
				t.Errorf("%s: read %s, %s", r.URI, got.URI, got.MIMEType)
			}
			read[r.Name] = got.Text
		}
		want := map[string]string{}
		for _, key := range oddKeys {
			want[key] = "value of " + key
		}
		if !maps.Equal(read, want) {
			t.Errorf("listed and read %q, want %q", read, want)
		}
		templates, err := client.All(c.ResourceTemplates(t.Context()))
		if err != nil || len(templates) != 1 || templates[0].URITemplate != Template {
			t.Errorf("templates: %v, %v", templates, err)
		}
		for _, uri := range []string{"kv://none", "kv://", "kv://a/b", "kv://" + strings.Repeat("x", 513), "other://x"} {
			_, err := c.ReadResource(t.Context(), uri)
			wantError(t, err, "resource not found")
		}
	})
}

func TestCompletesKeys(t *testing.T) {
	forRevisions(t, server.Options{}, func(t *testing.T, s *Server, c *client.Client) {
		for i := range 150 {
			call(t, c, "set", args{"key": fmt.Sprintf("user:%03d", i), "value": "x"})
		}
		call(t, c, "set", args{"key": "admin", "value": "x"})
		for typed, total := range map[string]int{"": 151, "user": 150, "user:14": 10, "admin": 1, "ser": 0} {
			got, err := c.Complete(t.Context(), mcp.ResourceRef(Template), "key", typed, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Total != total || len(got.Values) != min(total, 100) || got.HasMore != (total > 100) {
				t.Errorf("%q: %d of %d values, more: %v; want %d", typed, len(got.Values), got.Total, got.HasMore, total)
			}
		}
	})
}

func TestNotifies(t *testing.T) {
	forRevisions(t, server.Options{}, func(t *testing.T, s *Server, c *client.Client) {
		other := dial(t, s, client.Options{})
		defer other.Close()
		watch, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: []string{URI("a b")}})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		changes := make(chan string, 100)
		go func() {
			defer close(changes)
			for change, err := range watch.Changes() {
				if err != nil {
					t.Error(err)
				}
				changes <- change.Method + " " + change.URI
			}
		}()
		synctest.Wait() // a legacy session begins to listen on its own, shortly after it was initialized
		const listed = mcp.NotificationResourcesChanged + " "
		updated := mcp.NotificationResourceUpdated + " kv://a%20b"
		steps := []struct {
			tool string
			in   args
			want []string // in any order
		}{
			{"set", args{"key": "a b", "value": "1"}, []string{listed, updated}},
			{"set", args{"key": "a b", "value": "2"}, []string{updated}},
			{"set", args{"key": "other", "value": "1"}, []string{listed}},
			{"set", args{"key": "other", "value": "2"}, nil},
			{"delete", args{"key": "other"}, []string{listed}},
			{"delete", args{"key": "other"}, nil},
			{"set", args{"key": "a b", "value": "3", "ttl": 1}, []string{updated, updated, listed}}, // and then it expires
		}
		for _, step := range steps {
			call(t, other, step.tool, step.in)
			synctest.Wait()
			got := []string{}
			for range step.want {
				got = append(got, <-changes)
			}
			synctest.Wait()
			for len(changes) > 0 {
				got = append(got, <-changes)
			}
			slices.Sort(got)
			slices.Sort(step.want)
			if !slices.Equal(got, step.want) {
				t.Errorf("%s %v: got %q, want %q", step.tool, step.in, got, step.want)
			}
		}
	})
}

func TestDescribesItself(t *testing.T) {
	s, err := New(Memory(), server.Options{Instructions: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := dial(t, s, client.Options{})
	defer c.Close()
	if c.Server().Instructions != "mine" || c.Server().Info.Name != "kv" {
		t.Errorf("got %q and %+v", c.Server().Instructions, c.Server().Info)
	}
	tools, err := client.All(c.Tools(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		reads := tool.Name == "get" || tool.Name == "list"
		if a := tool.Annotations; a == nil || *a.OpenWorldHint || (a.ReadOnlyHint != nil) != reads || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, a)
		}
	}
}
