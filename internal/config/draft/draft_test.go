package draft_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/draft"
)

const secret = "correct-horse-battery"

const sample = `{
  // the team's servers
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "server-github", "--token", "` + secret + `"], // pinned by ops
      "env": {"API_KEY": "other-\"quoted\"-secret", "MODE": "${MODE}", "MY_TOKEN": "${TOKEN}"}
    },
    "docs": {"url": "https://docs.example/mcp"}
  },
  "unknown": 1
}
`

// newDesk returns a desk for one file with this text, or for a missing file.
func newDesk(t *testing.T, text string) (*draft.Desk, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dowel.json")
	if text != "" {
		write(t, path, text)
	}
	return &draft.Desk{Files: func() []config.File { return []config.File{{Path: path, Scope: config.User}} }}, path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func open(t *testing.T, d *draft.Desk, path string) draft.Opened {
	t.Helper()
	o, err := d.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The secrets of a file leave dowel neither in the draft nor in an outcome, and are in the file as
// before after the text around them was changed.
func TestSecretsStay(t *testing.T) {
	d, path := newDesk(t, sample)
	o := open(t, d, path)
	if strings.Contains(o.Text, secret) || strings.Contains(o.Text, "quoted") || !strings.Contains(o.Text, "⟨secret 1⟩") || !strings.Contains(o.Text, "${TOKEN}") {
		t.Errorf("opened %s", o.Text)
	}
	text := strings.ReplaceAll(o.Text, "server-github", "server-github@2")
	out, err := d.Save(draft.Change{Draft: o.Draft, Text: &text})
	if err != nil || !out.Written || len(out.Lines) != 2 || strings.Contains(out.Lines[0].Text+out.Lines[1].Text+strings.Join(out.Runs, ""), secret) {
		t.Fatalf("%+v, %v", out, err)
	}
	if got, want := read(t, path), strings.ReplaceAll(sample, "server-github", "server-github@2"); got != want {
		t.Errorf("got %s", got)
	}
	text = strings.ReplaceAll(out.Opened.Text, "⟨secret 1⟩", "⟨secret 9⟩")
	if _, err := d.Save(draft.Change{Draft: out.Opened.Draft, Text: &text}); err == nil || !strings.Contains(err.Error(), "⟨secret 9⟩") {
		t.Errorf("an unknown placeholder: %v", err)
	}
	text = strings.ReplaceAll(out.Opened.Text, "⟨secret 1⟩", "new-and-secret-value")
	if out, err = d.Save(draft.Change{Draft: out.Opened.Draft, Text: &text}); err != nil || strings.Contains(out.Opened.Text, "new-and-secret-value") {
		t.Errorf("%+v, %v", out, err)
	}
	if len(out.Lines) != 2 {
		t.Errorf("a line that differs in a secret alone is not shown: %+v", out.Lines)
	}
}

// An edit changes the smallest span: comments, unknown keys and the order stay.
func TestEdits(t *testing.T) {
	d, path := newDesk(t, sample)
	o := open(t, d, path)
	out, err := d.Save(draft.Change{Draft: o.Draft, Edits: []draft.Edit{
		{Path: []string{"mcpServers", "docs", "url"}, Value: "https://docs.example/v2"},
		{Path: []string{"mcpServers", "github", "env", "MODE"}, Remove: true},
		{Path: []string{"mcpServers", "new"}, Value: map[string]any{"command": "run-me"}},
	}})
	if err != nil || !out.Written || !slices.Equal(out.Runs, []string{"docs: https://docs.example/v2", "new: run-me"}) {
		t.Fatalf("%+v, %v", out, err)
	}
	want := strings.NewReplacer(`docs.example/mcp"}`, "docs.example/v2\"},\n    \"new\": {\"command\": \"run-me\"}", `"MODE": "${MODE}", `, "").Replace(sample)
	if got := read(t, path); got != want && !strings.Contains(got, `"new": {`) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := read(t, path); !strings.Contains(got, "// pinned by ops") || !strings.Contains(got, "// the team's servers") || !strings.Contains(got, `"unknown": 1`) || !strings.Contains(got, secret) {
		t.Errorf("got %s", got)
	}
	out, err = d.Save(draft.Change{Draft: out.Opened.Draft, Edits: []draft.Edit{{Path: []string{"mcpServers", "github"}, Remove: true}}})
	if err != nil || !slices.Equal(out.Removed, []string{"github"}) {
		t.Errorf("%+v, %v", out, err)
	}
}

// A change of a file that another program has changed meanwhile writes nothing, and shows both
// changes. The merged text can be saved, and so can one's own.
func TestConflict(t *testing.T) {
	d, path := newDesk(t, sample)
	o := open(t, d, path)
	theirs := strings.ReplaceAll(sample, `"unknown": 1`, `"unknown": 2`)
	write(t, path, theirs)
	mine := strings.ReplaceAll(o.Text, "docs.example/mcp", "docs.example/v2")
	out, err := d.Save(draft.Change{Draft: o.Draft, Text: &mine})
	if err != nil || out.Written || out.Conflict == nil || out.Conflict.HasOverlap || len(out.Conflict.Hunks) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	if read(t, path) != theirs {
		t.Error("the file was changed")
	}
	merged := out.Conflict.Merged
	if merged.Draft == o.Draft || strings.Contains(merged.Text, secret) || !strings.Contains(merged.Text, "docs.example/v2") || !strings.Contains(merged.Text, `"unknown": 2`) {
		t.Errorf("merged: %s", merged.Text)
	}
	if out, err = d.Save(draft.Change{Draft: merged.Draft, Text: &merged.Text}); err != nil || !out.Written {
		t.Errorf("%+v, %v", out, err)
	}
	if got, want := read(t, path), strings.ReplaceAll(theirs, "docs.example/mcp", "docs.example/v2"); got != want {
		t.Errorf("got %s", got)
	}

	write(t, path, strings.ReplaceAll(sample, "docs.example/mcp", "docs.example/v3"))
	out, err = d.Check(draft.Change{Draft: o.Draft, Text: &mine})
	if err != nil || out.Conflict == nil || !out.Conflict.HasOverlap || !strings.Contains(out.Conflict.Merged.Text, "docs.example/v2") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = d.Save(draft.Change{Draft: o.Draft, Text: &mine, Overwrite: true}); err != nil || !out.Written || len(out.Lines) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if got, want := read(t, path), strings.ReplaceAll(sample, "docs.example/mcp", "docs.example/v2"); got != want {
		t.Errorf("got %s", got)
	}
}

// Nothing is written that dowel could not read. A check writes nothing at all.
func TestBrokenText(t *testing.T) {
	d, path := newDesk(t, sample)
	o := open(t, d, path)
	for _, text := range []string{`{"mcpServers": {`, `{"mcpServers": {"a": {"command": 5}}}`} {
		out, err := d.Save(draft.Change{Draft: o.Draft, Text: &text})
		if err != nil || out.Written || !out.IsBroken || len(out.Problems) == 0 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	write(t, path, strings.Replace(sample, `"url": "https://docs.example/mcp"`, `"command": 5`, 1))
	o = open(t, d, path)
	other := strings.ReplaceAll(o.Text, "npx", "node")
	if out, err := d.Save(draft.Change{Draft: o.Draft, Text: &other}); err != nil || !out.Written || len(out.Problems) > 0 {
		t.Errorf("an old error prevents other changes: %+v, %v", out, err)
	}
	write(t, path, sample)
	o = open(t, d, path)
	fine := strings.ReplaceAll(o.Text, "npx", "node")
	out, err := d.Check(draft.Change{Draft: o.Draft, Text: &fine})
	if err != nil || out.Written || len(out.Lines) != 2 || len(out.Runs) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if read(t, path) != sample {
		t.Error("the file was changed")
	}
}

// A file that does not exist yet is made, readable for the user alone.
func TestNewFile(t *testing.T) {
	d, path := newDesk(t, "")
	o := open(t, d, path)
	if !o.IsNew || o.Text != "" {
		t.Errorf("%+v", o)
	}
	out, err := d.Save(draft.Change{Draft: o.Draft, Edits: []draft.Edit{{Path: []string{"mcpServers", "a", "command"}, Value: "x"}}})
	if err != nil || !out.Written {
		t.Fatalf("%+v, %v", out, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Only the files of the configuration can be opened, and only drafts that are known can be saved.
func TestForeignFiles(t *testing.T) {
	d, path := newDesk(t, sample)
	other := filepath.Join(filepath.Dir(path), "other.json")
	write(t, other, "{}")
	for _, p := range []string{other, "", path + "/../" + filepath.Base(path)} {
		if _, err := d.Open(p); err == nil {
			t.Errorf("%q was opened", p)
		}
	}
	if _, err := d.Save(draft.Change{Draft: "none"}); err == nil {
		t.Error("an unknown draft was saved")
	}
	first := open(t, d, path)
	for range 64 {
		open(t, d, path)
	}
	if _, err := d.Check(draft.Change{Draft: first.Draft}); err == nil {
		t.Error("the oldest of 65 drafts is still open")
	}
}
