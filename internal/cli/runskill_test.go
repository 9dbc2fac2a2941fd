package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// The model is told of the skills in the folder, loads one and reads its file. Without a terminal
// nobody approves the skill.
func TestRunUsesSkills(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"greet/SKILL.md": "---\nname: greet\ndescription: How to greet a guest\n---\nSay what words.md says.\n", "greet/words.md": "Good day.",
	} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := newModel(t, `{"turns": [{"expectBody": ["greet: How to greet a guest"], "calls": [{"name": "read_skill", "arguments": {"skill": "greet"}}]},
		{"expect": ["The skill greet of the server skills (its files are words.md):", "Say what words.md says."], "calls": [{"name": "read_skill", "arguments": {"skill": "greet", "file": "words.md"}}]},
		{"expect": ["Good day."], "text": "ok"}]}`)
	out := runDowel(t, "", "run", "--model", "m-test", "--base-url", m.url, "--server", "skills", "--dir", dir, "Greet the guest")
	if out.code != exit.OK || out.stdout != "ok\n" {
		t.Errorf("%+v", out)
	}
}
