package draft_test

import (
	"encoding/json"
	"fmt"
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
	if strings.Contains(o.Text, secret) || strings.Contains(o.Text, "quoted") || !strings.Contains(o.Text, "⟨secret-1⟩") || !strings.Contains(o.Text, "${TOKEN}") {
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
	text = strings.ReplaceAll(out.Opened.Text, "⟨secret-1⟩", "⟨secret-9⟩")
	if _, err := d.Save(draft.Change{Draft: out.Opened.Draft, Text: &text}); err == nil || !strings.Contains(err.Error(), "⟨secret-9⟩") {
		t.Errorf("an unknown placeholder: %v", err)
	}
	text = strings.ReplaceAll(out.Opened.Text, "⟨secret-1⟩", "new-and-secret-value")
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
	out, err = d.Save(draft.Change{Draft: o.Draft, Text: &mine, Overwrite: config.HashText([]byte(theirs))})
	if err != nil || out.Conflict == nil || !out.Conflict.HasOverlap || !strings.Contains(out.Conflict.Merged.Text, "docs.example/v2") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = d.Save(draft.Change{Draft: o.Draft, Text: &mine, Overwrite: out.Conflict.Merged.Hash}); err != nil || !out.Written || len(out.Lines) != 2 {
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

// newFile returns a desk for a file of this name and text.
func newFile(t *testing.T, name, text string) (*draft.Desk, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	return &draft.Desk{Files: func() []config.File { return []config.File{{Path: path, Scope: config.Project}} }}, path
}

// A file is shown without its secrets, in whatever form they are written, or not at all.
func TestUnusualSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"1.yaml":  "mcpServers:\n  a:\n    command: x\n    env:\n      PRIVATE_KEY: |\n        HUSHone\n        HUSHtwo\n",
		"2.yaml":  "mcpServers:\n  a:\n    command: x\n    env:\n      API_TOKEN: >-\n        HUSHone\n",
		"3.yaml":  "mcpServers:\n  a:\n    command: x\n    env:\n      API_KEY: 'it''s HUSHq'\n",
		"4.yaml":  "mcpServers:\n  a:\n    url: https://a.example\n    oauth:\n      clientSecret: >\n        HUSHone\n",
		"5.json":  `{"mcpServers": {"a": {"command": "x", "env": {"API\u005fKEY": "HUSH\u0041bc"}}}}`,
		"6.json":  `{"mcpServers": {"a": {"command": "x", "args": ["--token", "HUSH\u0042zz"]}}}`,
		"7.jsonc": "{\"mcpServers\": {\"a\": {\"command\": \"x\"} //\"API_KEY\": \"HUSHone\"\n}}",
		"8.jsonc": "{\"mcpServers\": {/*\"API_KEY\": \"HUSHone\"*/\"a\": {\"command\": \"x\"}}}",
		"9.yaml":  "mcpServers:\n  a:\n    command: x\n    #API_KEY: HUSHone\n",
		"10.yaml": "mcpServers:\n  a:\n    command: x\n    env: [\n      API_KEY: HUSHone y HUSHtwo\n",
		"11.toml": "[mcpServers.a]\ncommand = \"x\"\n[mcpServers.a.env]\nAPI_KEY = '''HUSHone\nHUSHtwo'''\n",
		"12.toml": "[mcpServers.a]\ncommand = \"x\n[mcpServers.a.env]\nAPI_KEY = '''HUSHone\nHUSHtwo'''\n",
		"13.json": `{"models": {"m": {"apiKey": "HUSHone"}}, "mcpServers": {"a": {"url": "https://u:HUSHpw@a.example/?api_key=HUSHtwo"}}}`,
		"14.json": "-----BEGIN OPENSSH PRIVATE KEY-----\nHUSHone\n-----END OPENSSH PRIVATE KEY-----\n",
	} {
		d, path := newFile(t, name, text)
		mustShow := slices.Contains([]string{"7.jsonc", "8.jsonc", "9.yaml", "11.toml", "13.json"}, name)
		if _, err := d.Open(path); err != nil && mustShow {
			t.Errorf("%s is not shown: %v", name, err)
		}
		if o, err := d.Open(path); err == nil && (strings.Contains(o.Text, "HUSH") || strings.Contains(o.Text, "005fKEY") && strings.Contains(o.Text, "0041")) {
			t.Errorf("%s shows %s", name, o.Text)
		} else if err != nil && strings.Contains(err.Error(), "HUSH") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the user writes around the placeholders brings no secret to light, and neither does a
// conflict.
func TestMovedPlaceholders(t *testing.T) {
	text := "[mcpServers.a]\ncommand = \"x\"\nargs = [\"--token\", \"HUSHflag1\"]\n[mcpServers.a.env]\nAPI_KEY = '''HUSHone\nHUSHtwo'''\nB_TOKEN = \"HUSH\"\nC_TOKEN = \"HUSHtok12\"\n"
	d, path := newFile(t, "dowel.toml", text)
	o := open(t, d, path)
	look := func(what string, out draft.Outcome, err error) {
		t.Helper()
		shown, _ := json.Marshal(out)
		if strings.Contains(string(shown)+fmt.Sprint(err), "HUSH") || strings.Contains(string(shown), "tok12") {
			t.Errorf("%s: %s, %v", what, shown, err)
		}
	}
	for what, change := range map[string][2]string{
		"typo": {`command = "x"`, `command = "x`}, "command": {`command = "x"`, `command = "⟨secret-1⟩ y"`}, "name": {`command = "x"`, "command = \"x\"\ncwd = \"⟨secret-2⟩\""},
		"rotated": {"⟨secret-1⟩", "fresh"},
	} {
		mine := strings.Replace(o.Text, change[0], change[1], 1)
		if mine == o.Text {
			t.Fatalf("%s changes nothing in %s", what, o.Text)
		}
		out, err := d.Check(draft.Change{Draft: o.Draft, Text: &mine})
		look(what, out, err)
		if err == nil && len(out.Lines) == 0 {
			t.Errorf("%s: no line changes", what)
		}
	}
	write(t, path, strings.NewReplacer("HUSHtwo", "HUSHnew", `command = "x"`, `command = "z"`).Replace(text))
	mine := strings.Replace(o.Text, `command = "x"`, `command = "⟨secret-1⟩"`, 1)
	out, err := d.Save(draft.Change{Draft: o.Draft, Text: &mine})
	look("conflict", out, err)
	if out.Conflict == nil || !out.Conflict.HasOverlap {
		t.Errorf("%+v", out)
	}
}

// The line ends of a file stay, although a browser's text has others.
func TestLineEnds(t *testing.T) {
	d, path := newDesk(t, strings.ReplaceAll(sample, "\n", "\r\n"))
	o := open(t, d, path)
	mine := strings.NewReplacer("\r\n", "\n", "npx", "node").Replace(o.Text)
	out, err := d.Save(draft.Change{Draft: o.Draft, Text: &mine})
	if err != nil || !out.Written || len(out.Lines) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if got := read(t, path); got != strings.NewReplacer("\n", "\r\n", "npx", "node").Replace(sample) {
		t.Errorf("got %q", got)
	}
}

// Files that cannot be edited here say why, and are left alone.
func TestRefusedFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "id_ed25519")
	write(t, outside, `{"mcpServers": {}}`)
	link := filepath.Join(t.TempDir(), ".mcp.json")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	d := &draft.Desk{Files: func() []config.File { return []config.File{{Path: link, Scope: config.Project}} }}
	if _, err := d.Open(link); err == nil || !strings.Contains(err.Error(), "out of its folder") {
		t.Errorf("a link: %v", err)
	}
	for text, want := range map[string]string{
		"{\"mcpServers\": {} // caf\xe9\n}":      "UTF-8",
		`{"mcpServers": {}} // ⟨secret-1⟩`:       "stand for a secret",
		"{" + strings.Repeat(" ", 300_000) + "}": "at most",
		`{"mcpServers": `:                        "cannot be read",
	} {
		d, path := newDesk(t, text)
		if _, err := d.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	d, path := newDesk(t, strings.ReplaceAll(sample, secret, strings.Repeat("x", 5000)))
	o := open(t, d, path)
	much := strings.Repeat("⟨secret-1⟩", 4000)
	if _, err := d.Check(draft.Change{Draft: o.Draft, Text: &much}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long text: %v", err)
	}
}
