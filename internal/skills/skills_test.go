package skills_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// manifest returns a SKILL.md.
func manifest(name string) string {
	return "---\nname: " + name + "\ndescription: How to do " + name + "\n---\nBody of " + name + "\n"
}

// put writes files below a folder.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// open returns a folder with files, and a client of its server.
func open(t *testing.T, files map[string]string) (dir string, f *skills.Folder, c *client.Client) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, files)
	f, err := skills.Open(dir, &skills.Options{Poll: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	s := server.New("docs", "1.0.0", nil)
	t.Cleanup(func() { _ = s.Close() })
	if err := f.AddTo(s); err != nil {
		t.Fatal(err)
	}
	return dir, f, dial(t, s)
}

func dial(t *testing.T, h mcp.Handler) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), h, &client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// listURIs returns the URIs of a server's skills.
func listURIs(t *testing.T, c *client.Client) (uris []string) {
	t.Helper()
	for s, err := range skills.List(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, s.URI)
	}
	return uris
}

func TestServedSkillsAreListedAndRead(t *testing.T) {
	_, _, c := open(t, map[string]string{
		"pdf/SKILL.md": manifest("pdf"), "pdf/references/FORMS a.md": "forms", "pdf/data.bin": "\xFF\x00\xFE",
		"acme/billing/refunds/SKILL.md": manifest("refunds"), "acme/README.md": "no skill",
	})
	if got, want := listURIs(t, c), []string{"skill://acme/billing/refunds/SKILL.md", "skill://pdf/SKILL.md"}; !slices.Equal(got, want) {
		t.Fatalf("listed: %q, want %q", got, want)
	}
	s, err := skills.Get(t.Context(), c, "skill://pdf/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name() != "pdf" || s.Description() != "How to do pdf" || len(s.Files) != 3 {
		t.Errorf("entry: %+v", s)
	}
	if text, err := s.Load(t.Context(), c); err != nil || text != manifest("pdf") {
		t.Errorf("Load: %q, %v", text, err)
	}
	for _, name := range []string{"references/FORMS a.md", "./references/../references/FORMS a.md", "skill://pdf/references/FORMS%20a.md"} {
		if c, err := s.Read(t.Context(), c, name); err != nil || c.Text != "forms" || c.MIMEType != "text/markdown" {
			t.Errorf("Read(%q): %+v, %v", name, c, err)
		}
	}
	if got, err := s.Read(t.Context(), c, "data.bin"); err != nil || string(got.Blob) != "\xFF\x00\xFE" {
		t.Errorf("Read(data.bin): %+v, %v", got, err)
	}
	for _, name := range []string{"", ".", "..", "../acme/README.md", "/etc/passwd", "other.md", "skill://acme/README.md", "skill://pdf/%2e%2e/acme/README.md"} {
		var refused *skills.VerificationError
		if got, err := s.Read(t.Context(), c, name); !errors.As(err, &refused) {
			t.Errorf("Read(%q): %+v, %v: want a VerificationError", name, got, err)
		}
	}
}

func TestOnlyFilesOfSkillsCanBeRead(t *testing.T) {
	dir, f, c := open(t, map[string]string{
		"a/SKILL.md": manifest("a"), "a/.secret": "s", "outside.md": "o", "bad/SKILL.md": manifest("other"), "bad/x.md": "x",
	})
	outside := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(outside, []byte("root"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"a/abs.md": outside, "a/up.md": "../outside.md", "linked": outside}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, uri := range []string{
		"skill://a/.secret", "skill://a/abs.md", "skill://a/up.md", "skill://outside.md", "skill://a/../outside.md", "skill://a/%2e%2e/outside.md",
		"skill://bad/x.md", "skill://bad/SKILL.md", "skill://a", "skill://a/", "skill://a//SKILL.md", "skill:///etc/passwd", "skill://linked", "skill://a/SKILL.md%00",
	} {
		var answered *mcp.Error
		if res, err := c.ReadResource(t.Context(), uri); !errors.As(err, &answered) || answered.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %+v, %v: want error -32602", uri, res, err)
		}
	}
	all, problems, err := f.Skills()
	if err != nil || len(all) != 1 || len(all[0].Files) != 1 {
		t.Errorf("skills: %+v, %v: want a with one file", all, err)
	}
	for _, want := range []string{"bad: its folder is not named other", "a/up.md: it is a symbolic link", "linked: it is a symbolic link"} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("problems: %q: want %q", problems, want)
		}
	}
}

func TestFoldersThatAreNoSkills(t *testing.T) {
	many := map[string]string{"many/SKILL.md": manifest("many")}
	for i := range skills.MaxFiles {
		many[fmt.Sprintf("many/%d", i)] = ""
	}
	for _, tt := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"a/SKILL.md": "# A"}, "a: SKILL.md: it does not begin with frontmatter"},
		{map[string]string{"a/SKILL.md": "---\nname: a\n---\n"}, "a: its frontmatter has no description"},
		{map[string]string{"A/SKILL.md": manifest("A")}, `A: the name "A" is not 1 to 64`},
		{map[string]string{"a--b/SKILL.md": manifest("a--b")}, `the name "a--b" is not 1 to 64`},
		{map[string]string{"a/SKILL.md": "---\n[a]\n---\n"}, "not a YAML mapping"},
		{map[string]string{"a/SKILL.md": "---\nname: a: b\n---\n"}, "a: SKILL.md: its frontmatter is not YAML: "},
		{map[string]string{"a/SKILL.md": "---\nname: &x a\ndescription: *x\n---\n"}, "an anchor, alias, tag or merge key at line 1"},
		{map[string]string{"a/SKILL.md": "---\nname: a\nx: " + strings.Repeat("[", 9000) + "\n---\n"}, "nested more than 16 deep"},
		{map[string]string{"a/SKILL.md": "---\nname: a\nx: " + strings.Repeat("y", 20000) + "\n---\n"}, "does not end within 16 KiB"},
		{map[string]string{"a/SKILL.md": manifest("a"), "a/big": strings.Repeat("x", skills.MaxSize)}, "more than 16 MiB together"},
		{many, "many: it has 513 files, and a skill may have 512"},
	} {
		_, f, c := open(t, tt.files)
		all, problems, err := f.Skills()
		if err != nil || len(all) > 0 || len(problems) != 1 || !strings.Contains(problems[0], tt.want) {
			t.Errorf("skills %v, problems %q, %v: want %q", all, problems, err, tt.want)
		}
		if got := listURIs(t, c); got != nil {
			t.Errorf("listed: %q", got)
		}
	}
}

func TestNestedSkills(t *testing.T) {
	_, f, _ := open(t, map[string]string{"a/SKILL.md": manifest("a"), "a/b/SKILL.md": manifest("b"), "a/b/x.md": "x"})
	all, _, err := f.Skills()
	if err != nil || len(all) != 2 {
		t.Fatalf("skills: %v, %v", all, err)
	}
	outer, inner := all[0], all[1]
	if outer.URI != "skill://a/SKILL.md" || len(outer.Files) != 3 || inner.URI != "skill://a/b/SKILL.md" || len(inner.Files) != 2 {
		t.Errorf("outer %+v, inner %+v", outer, inner)
	}
}

func TestTheFolderItselfCanBeASkill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "solo")
	put(t, dir, map[string]string{"SKILL.md": manifest("solo"), "x/y.md": "y"})
	f, err := skills.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, problems, err := f.Skills()
	if err != nil || len(all) != 1 || all[0].URI != "skill://solo/SKILL.md" || all[0].Files[1].URI != "skill://solo/x/y.md" {
		t.Errorf("skills %+v, problems %q, %v", all, problems, err)
	}
}

func TestDirectoryListsChildren(t *testing.T) {
	files := map[string]string{"a/SKILL.md": manifest("a"), "a/templates/x.md": "x", "a/templates/eu/y.md": "y"}
	for i := range 200 {
		files[fmt.Sprintf("a/many/%03d", i)] = ""
	}
	dir, _, c := open(t, files)
	if err := os.Mkdir(filepath.Join(dir, "a", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"skill://a":           "skill://a/SKILL.md text/markdown, skill://a/empty inode/directory, skill://a/many inode/directory, skill://a/templates inode/directory",
		"skill://a/templates": "skill://a/templates/eu inode/directory, skill://a/templates/x.md text/markdown", "skill://a/empty": "",
	} {
		var got []string
		for r, err := range skills.Directory(t.Context(), c, uri) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.URI+" "+r.MIMEType)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
	many, err := client.All(skills.Directory(t.Context(), c, "skill://a/many"))
	if err != nil || len(many) != 200 {
		t.Errorf("many: %d, %v", len(many), err)
	}
	for _, uri := range []string{"skill://a/SKILL.md", "skill://a/", "skill://none", "skill://", ""} {
		var answered *mcp.Error
		if _, err := client.All(skills.Directory(t.Context(), c, uri)); !errors.As(err, &answered) || answered.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%q: %v: want error -32602", uri, err)
		}
	}
}

func TestListHasPages(t *testing.T) {
	files, folder := map[string]string{}, ""
	for i := range 6 { // nested, so that few files are many entries
		folder = fmt.Sprintf("%ss%d/", folder, i)
		files[folder+"SKILL.md"] = manifest(fmt.Sprintf("s%d", i))
	}
	for i := range 150 {
		files[folder+fmt.Sprint(i)] = ""
	}
	_, _, c := open(t, files)
	pages := mcp.Method[map[string]any, struct {
		Skills []skills.Skill `json:"skills"`
		mcp.Page
	}]{Name: "skills/list"}
	first, err := client.Do(t.Context(), c, pages, map[string]any{})
	if err != nil || len(first.Skills) == 6 || first.NextCursor == nil {
		t.Fatalf("first page: %d skills, cursor %v, %v", len(first.Skills), first.NextCursor, err)
	}
	for method, params := range map[string]map[string]any{"skills/list": {}, "skills/get": {"uri": first.Skills[0].URI}} {
		raw, err := client.Do(t.Context(), c, mcp.Method[map[string]any, json.RawMessage]{Name: method}, params)
		if err != nil || !strings.Contains(string(raw), `"ttlMs":0,"cacheScope":"private"`) {
			t.Errorf("%s: %.300s, %v: want a hint for caches", method, raw, err)
		}
	}
	if got := listURIs(t, c); len(got) != 6 || !slices.IsSorted(got) {
		t.Errorf("listed: %q", got)
	}
	var answered *mcp.Error
	if _, err := client.Do(t.Context(), c, pages, map[string]any{"cursor": "7"}); !errors.As(err, &answered) || answered.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a cursor of another server: %v: want error -32602", err)
	}
	if _, err := skills.Get(t.Context(), c, "skill://none/SKILL.md"); !errors.As(err, &answered) || answered.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("an unknown skill: %v: want error -32602", err)
	}
}

func TestChangesAreToldAndVerified(t *testing.T) {
	dir, _, c := open(t, map[string]string{"a/SKILL.md": manifest("a"), "a/x.md": "one"})
	s, err := skills.Get(t.Context(), c, "skill://a/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := c.Watch(ctx, mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: []string{"skill://a/x.md"}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"a/x.md": "two"}) // as long, and within the same moment
	told := map[string]bool{}
	for change, err := range w.Changes() {
		if err != nil {
			t.Fatal(err)
		}
		if told[change.Method] = true; len(told) == 2 {
			break
		}
	}
	w.Close()
	var refused *skills.VerificationError
	if got, err := s.Read(t.Context(), c, "x.md"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "digest") {
		t.Errorf("a changed file under the old entry: %+v, %v: want a VerificationError", got, err)
	}
	s, err = skills.Get(t.Context(), c, s.URI)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(t.Context(), c, "x.md"); err != nil || got.Text != "two" {
		t.Errorf("under the new entry: %+v, %v", got, err)
	}
}

func TestAServerServesOneFolder(t *testing.T) {
	f, err := skills.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := server.New("docs", "1.0.0", nil)
	if err := f.AddTo(s); err != nil {
		t.Fatal(err)
	}
	if err := f.AddTo(s); err == nil || !strings.Contains(err.Error(), "has skills already") {
		t.Errorf("AddTo: %v", err)
	}
}

func TestServersWithoutSkills(t *testing.T) {
	c := dial(t, server.New("docs", "1.0.0", nil))
	if _, err := client.All(skills.List(t.Context(), c)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("List: %v", err)
	}
	if _, err := skills.Get(t.Context(), c, "skill://a/SKILL.md"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Get: %v", err)
	}
	if _, err := client.All(skills.Directory(t.Context(), c, "skill://a")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Directory: %v", err)
	}
}

func TestCheckRefusesEntries(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	own := `{"uri":"skill://a/SKILL.md","digest":"` + digest + `","size":1}`
	entry := func(resources string) string {
		return `{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d"},"resources":` + resources + `}`
	}
	for raw, want := range map[string]string{
		entry(`[` + own + `]`): "", entry(`"dynamic"`): "",
		entry(`"static"`): "neither a list", entry(`null`): "neither a list", entry(`[]`): "does not list its own", entry(`[1]`): "cannot be decoded",
		`{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d"}}`:                       "neither a list",
		`{"uri":"skill://a/skill","frontmatter":{"name":"a","description":"d"},"resources":"dynamic"}`:    "does not end with /SKILL.md",
		`{"uri":"skill://a/SKILL.md","frontmatter":{"name":"b","description":"d"},"resources":"dynamic"}`: "not named b",
		`{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a"},"resources":"dynamic"}`:                   "no description",
		`{"uri":"skill://a/SKILL.md","frontmatter":[],"resources":"dynamic"}`:                             "the name",
		entry(`[` + own + `,` + own + `]`):                                                                "twice",
		entry(`[` + own + `,{"uri":"skill://b/x","digest":"` + digest + `","size":1}]`):                   "not in its folder",
		entry(`[` + own + `,{"uri":"skill://a/x","digest":"` + digest + `"}]`):                            "has no size",
		entry(`[` + own + `,{"uri":"skill://a/x","digest":"` + digest + `","size":-1}]`):                  "has no size",
		entry(`[` + own + `,{"uri":"skill://a/x","digest":"` + digest + `","size":16777216}]`):            "more than 16 MiB",
		entry(`[` + own + `,{"uri":"skill://a/x","digest":"sha256:AB","size":1}]`):                        "the digest of",
	} {
		var s skills.Skill
		if err := json.Unmarshal([]byte(raw), &s); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if err := s.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

func TestListReadsNoFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a/SKILL.md": manifest("a")})
	f, err := skills.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := server.New("docs", "1.0.0", nil)
	if err := f.AddTo(s); err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodReadResource {
				reads.Add(1)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	c := dial(t, s)
	if got := listURIs(t, c); len(got) != 1 || reads.Load() != 0 {
		t.Errorf("listed %q with %d reads", got, reads.Load())
	}
	if a, err := skills.Get(t.Context(), c, "skill://a/SKILL.md"); err != nil || reads.Load() != 0 {
		t.Errorf("%+v, %v with %d reads", a, err, reads.Load())
	}
}
