package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// skillServer returns a server of skills with these names. Their text names the server.
func skillServer(t *testing.T, name string, names ...string) *server.Server {
	t.Helper()
	dir := t.TempDir()
	for _, skill := range names {
		at := filepath.Join(dir, skill)
		text := "---\nname: " + skill + "\ndescription: " + skill + " of " + name + "\n---\nBody\n"
		err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "SKILL.md"), []byte(text), 0o644),
			os.WriteFile(filepath.Join(at, "file one.md"), []byte("file of "+name), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := skills.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s := server.New(name, "1", nil)
	if err := f.AddTo(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Skills of several upstreams keep apart, also with the same URI, and pass verification.
func TestSkillsOfAllUpstreams(t *testing.T) {
	t.Parallel()
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
		wire := client.Options{Wire: client.Wire{Revision: revision}}
		g, _ := over(t,
			hub.Definition{Name: "one", Target: skillServer(t, "one", "forms", "refunds"), Options: wire},
			hub.Definition{Name: "plain", Target: server.New("plain", "1", nil), Options: wire},
			hub.Definition{Name: "two", Target: skillServer(t, "two", "forms"), Options: wire})
		c := dial(t, g, client.Options{})
		all, err := client.All(skills.List(t.Context(), c))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range all {
			text, err := s.Load(t.Context(), c)
			file, fileErr := s.Read(t.Context(), c, "file one.md")
			if err != nil || fileErr != nil || !strings.Contains(text, s.Description()) {
				t.Errorf("%s: %q, %v, %v", s.URI, text, err, fileErr)
			}
			owner, _ := s.Meta[wirename.MetaServer].(string)
			got = append(got, owner+" "+s.URI+" "+file.Text)
			if again, err := skills.Get(t.Context(), c, s.URI); err != nil || !slices.Equal(again.Files, s.Files) {
				t.Errorf("Get(%s): %+v, %v", s.URI, again, err)
			}
		}
		want := []string{
			"one dowel://one/skill://forms/SKILL.md file of one", "one dowel://one/skill://refunds/SKILL.md file of one",
			"two dowel://two/skill://forms/SKILL.md file of two",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: skills %q, want %q", revision, got, want)
		}
		own, err := skills.Get(t.Context(), c, "skill://refunds/SKILL.md") // as a server's instructions may name it
		if err != nil || own.URI != "skill://refunds/SKILL.md" || own.Check() != nil || own.Meta[wirename.MetaServer] != "one" {
			t.Errorf("under its own URI: %+v, %v", own, err)
		}
		for _, unknown := range []string{"skill://none/SKILL.md", "dowel://plain/skill://forms/SKILL.md", "dowel://none/skill://forms/SKILL.md"} {
			var answered *mcp.Error
			if s, err := skills.Get(t.Context(), c, unknown); !errors.As(err, &answered) || answered.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: %+v, %v: want error -32602", unknown, s, err)
			}
		}
	}
}

// A gateway of one upstream, and one over another gateway, leave the skills as they are.
func TestSkillsOfOneUpstream(t *testing.T) {
	t.Parallel()
	g, _ := over(t, hub.Definition{Name: "one", Target: skillServer(t, "one", "forms")}, hub.Definition{Name: "two", Target: skillServer(t, "two", "forms")})
	outer, _ := over(t, hub.Definition{Name: "inner", Target: g})
	for name, tt := range map[string]struct {
		handler mcp.Handler
		want    []string
	}{
		"only":  {g.Only("two"), []string{"skill://forms/SKILL.md"}},
		"relay": {outer.Relay("inner"), []string{"dowel://one/skill://forms/SKILL.md", "dowel://two/skill://forms/SKILL.md"}},
	} {
		c := dial(t, tt.handler, client.Options{})
		var got []string
		for s, err := range skills.List(t.Context(), c) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.URI)
			if _, err := s.Load(t.Context(), c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := skills.Get(t.Context(), c, s.URI); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// An upstream whose list fails does not hide the skills of others, and a foreign cursor is refused.
func TestSkillListsFail(t *testing.T) {
	t.Parallel()
	bad := server.New("bad", "1", &server.Options{Extensions: []mcp.Extension{{ID: mcpwire.ExtensionSkills}}})
	g, _ := over(t, hub.Definition{Name: "bad", Target: bad}, hub.Definition{Name: "good", Target: skillServer(t, "good", "forms")})
	c := dial(t, g, client.Options{})
	if all, err := client.All(skills.List(t.Context(), c)); err != nil || len(all) != 1 {
		t.Errorf("skills %v, %v: want one", all, err)
	}
	list := mcp.Method[map[string]any, map[string]any]{Name: "skills/list"}
	for _, cursor := range []string{"", "x", "gone\n", "good\nx", "good\n=x"} {
		var answered *mcp.Error
		if res, err := client.Do(t.Context(), c, list, map[string]any{"cursor": cursor}); !errors.As(err, &answered) || answered.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("cursor %q: %v, %v: want error -32602", cursor, res, err)
		}
	}
}
