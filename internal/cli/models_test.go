package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/models"
)

func TestModels(t *testing.T) {
	m := newModel(t, `{"turns": [{"text": "yes"}]}`)
	file := t.TempDir() + "/dowel.json"
	writeFile(t, file, `{"model": "here", "models": {
		"here": {"provider": "openai", "model": "m", "url": "`+m.url+`?key=hidden"},
		"there": {"provider": "openai", "model": "m", "key": "${NO_SUCH_VARIABLE}"}
	}}`)
	out := runDowel(t, "", "models", "--config", file)
	for _, want := range []string{"*  here", "openai", "?key=****", "ready", "there", "cannot be used", "NO_SUCH_VARIABLE is not set"} {
		if out.code != exit.OK || !strings.Contains(out.stdout, want) {
			t.Errorf("%d, without %q:\n%s%s", out.code, want, out.stdout, out.stderr)
		}
	}
	if out = runDowel(t, "", "models", "--config", file, "--check", "here"); out.code != exit.OK || !strings.Contains(out.stdout, "answers in ") || strings.Contains(out.stdout, "there") {
		t.Errorf("%+v", out)
	}
	out = runDowel(t, "", "models", "--config", file, "--check", "--json", "there")
	var said struct{ Models []models.ModelLine }
	if err := json.Unmarshal([]byte(out.stdout), &said); err != nil || out.code != exit.Failed || len(said.Models) != 1 || said.Models[0].Problem == "" || said.Models[0].Chosen {
		t.Errorf("%+v, %v", out, err)
	}
	if out = runDowel(t, "", "models", "--config", file, "hree"); out.code != exit.Usage || !strings.Contains(out.stderr, "your configuration has no model hree; did you mean") {
		t.Errorf("%+v", out)
	}
}

// models lists the model that the environment names. Without any model, it tells how to get one.
func TestModelsOfTheEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	m := newModel(t, `{"turns": [{"fail": {"status": 401, "message": "no"}}]}`)
	if out := runDowel(t, "", "models"); out.code != exit.OK || out.stdout != "" || !strings.Contains(out.stderr, "ollama pull") {
		t.Errorf("%+v", out)
	}
	t.Setenv("DOWEL_MODEL", "gpt-test")
	t.Setenv("OPENAI_BASE_URL", m.url)
	if out := runDowel(t, "", "models", "--check"); out.code != exit.Failed || !strings.Contains(out.stdout, "*  gpt-test") || !strings.Contains(out.stdout, "cannot be used") {
		t.Errorf("%+v", out)
	}
}
