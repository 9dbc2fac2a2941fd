package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// A key from the environment is sent to the provider's own URL, or to the URL of the flags or the
// environment, but not to a URL of the configuration.
func TestKeysOfTheEnvironment(t *testing.T) {
	m := newModel(t, `{"key": "of-the-environment", "turns": [{"text": "ok"}]}`)
	t.Setenv("OPENAI_API_KEY", "of-the-environment")
	if out := runDowel(t, "", m.runArgs(t, "Go")...); out.code != exit.OK {
		t.Errorf("%+v", out)
	}
	m = newModel(t, `{"turns": [{"text": "ok"}]}`)
	t.Setenv("OPENAI_API_KEY", "of-the-environment")
	file := t.TempDir() + "/dowel.json"
	writeFile(t, file, `{"models": {"other": {"model": "gpt-test", "url": "`+m.url+`"}}}`)
	if out := runDowel(t, "", withTestServer(t, "run", "Go", "--config", file, "--model", "other")...); out.code != exit.OK {
		t.Errorf("%+v", out)
	}
	for _, r := range m.Requests() {
		if key := r.Header.Get("Authorization"); key != "" {
			t.Errorf("%s was sent", key)
		}
	}
}

// The settings of a configured model are sent with its requests.
func TestModelSettings(t *testing.T) {
	for name, test := range map[string]struct{ entry, body string }{
		"chat":     {`"provider": "openai", "url": "URL", "maxTokens": 321, "extra": {"reasoning_effort": "low"}`, `"max_tokens":321 "reasoning_effort":"low"`},
		"messages": {`"provider": "anthropic", "url": "URL", "maxTokens": 4321, "thinking": 2048`, `"budget_tokens":2048`},
		"prompt":   {`"provider": "openai", "url": "URL", "tools": "prompt"`, `"role":"system"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, `{"turns": [{"text": "ok"}]}`)
			file := t.TempDir() + "/dowel.json"
			writeFile(t, file, `{"models": {"it": {"model": "gpt-test", `+strings.ReplaceAll(test.entry, "URL", m.url)+`}}}`)
			if out := runDowel(t, "", withTestServer(t, "run", "Go", "--config", file)...); out.code != exit.OK || out.stdout != "ok\n" {
				t.Errorf("%+v", out)
			}
			for _, r := range m.Requests() {
				for part := range strings.FieldsSeq(test.body) {
					if !strings.Contains(string(r.Body), part) {
						t.Errorf("no %s in %s", part, r.Body)
					}
				}
				if name == "prompt" && strings.Contains(string(r.Body), `"tools":`) {
					t.Errorf("tools are offered: %s", r.Body)
				}
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
