package modelregistry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/mcp"
)

const namedModels = `{"models": {
	"local": {"model": "qwen3", "url": "http://localhost:11434/v1", "window": 32768},
	"cloud": {"provider": "anthropic", "model": "claude-sonnet-4-5", "key": "${CLAUDE_KEY}"},
	"unset": {"model": "m", "key": "${NO_SUCH_VARIABLE}"},
	"bare": {"model": "gpt-5"},
	"wrong": {"provider": "opnai", "model": "gpt-5"}
}%s}`

// newTestRegistry returns the registry of a configuration file and an environment.
func newTestRegistry(t *testing.T, file string, environment map[string]string) *Registry {
	t.Helper()
	path := t.TempDir() + "/dowel.json"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	set := config.Load(config.Options{Files: []string{path}, Env: func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}})
	return &Registry{Set: set, warn: t.Errorf, getenv: func(name string) string { return environment[name] }}
}

func TestChooseModel(t *testing.T) {
	const openAI, anthropic, local = "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "OPENAI_BASE_URL=http://localhost:1/v1"
	for _, test := range []struct {
		name, environment, config string
		flags                     ModelFlags
		want                      string // provider model url, or a part of the error
	}{
		{name: "nothing", want: "ollama pull qwen3"},
		{name: "a key of Anthropic's", environment: anthropic, want: "ANTHROPIC_API_KEY is set, so write --model with one of Anthropic's"},
		{name: "a key of OpenAI's", environment: openAI, want: "OPENAI_API_KEY is set, so write --model"},
		{name: "a place", environment: local, want: "OPENAI_BASE_URL is set, so write --model"},
		{name: "a provider alone", flags: ModelFlags{Provider: "openai"}, want: "add --model"},
		{name: "claude", environment: openAI + " " + anthropic, flags: ModelFlags{Model: "claude-sonnet-4-5"}, want: "anthropic claude-sonnet-4-5 "},
		{name: "gpt", environment: openAI + " " + anthropic, flags: ModelFlags{Model: "gpt-5"}, want: "openai gpt-5 "},
		{name: "the only key", environment: anthropic, flags: ModelFlags{Model: "sonnet"}, want: "anthropic sonnet "},
		{name: "the place of the environment", environment: local, flags: ModelFlags{Model: "qwen3"}, want: "openai qwen3 http://localhost:1/v1"},
		{name: "a place, and a key of Anthropic's", environment: local + " " + anthropic, flags: ModelFlags{Model: "qwen3"}, want: "openai qwen3 http://localhost:1/v1"},
		{name: "a place of one's own", flags: ModelFlags{Model: "qwen3", Url: "http://localhost:2/v1"}, want: "openai qwen3 http://localhost:2/v1"},
		{name: "a place of the environment for Anthropic's", environment: "ANTHROPIC_BASE_URL=http://localhost:3", flags: ModelFlags{Model: "claude-x"}, want: "anthropic claude-x http://localhost:3"},
		{name: "a session's place is not that of the environment", environment: anthropic + " ANTHROPIC_BASE_URL=http://localhost:3", flags: ModelFlags{Model: "claude-x", Provider: "anthropic", Again: true}, want: "anthropic claude-x https://api.anthropic.com"},
		{name: "a place with a slip", config: `{"models": {"m": {"model": "llama", "provider": "openai", "ulr": "http://localhost"}}}`, environment: openAI, flags: ModelFlags{Model: "m"}, want: `unknown key "models.m.ulr"`},
		{name: "a place of one's own for Anthropic's", flags: ModelFlags{Model: "m", Url: "http://localhost:2", Provider: "anthropic"}, want: "anthropic m http://localhost:2"},
		{name: "the variable", environment: local + " DOWEL_MODEL=qwen3", want: "openai qwen3 http://localhost:1/v1"},
		{name: "the variable names a name", config: namedModels, environment: "DOWEL_MODEL=local", want: "openai qwen3 http://localhost:11434/v1"},
		{name: "no key", flags: ModelFlags{Model: "gpt-5"}, want: "there is no key for gpt-5: set OPENAI_API_KEY"},
		{name: "no key of Anthropic's", environment: openAI, flags: ModelFlags{Model: "claude-sonnet-4-5"}, want: "set ANTHROPIC_API_KEY"},
		{name: "no such provider", flags: ModelFlags{Model: "m", Provider: "opnai"}, want: "--provider opnai: write openai or anthropic; did you mean openai?"},
		{name: "no URL", flags: ModelFlags{Model: "m", Url: "localhost:11434"}, want: "write one such as http://localhost:11434/v1"},

		{name: "a name", config: namedModels, flags: ModelFlags{Model: "local"}, want: "openai qwen3 http://localhost:11434/v1"},
		{name: "a name is not affected by the environment", config: namedModels, environment: local + " " + openAI, flags: ModelFlags{Model: "bare"}, want: "openai gpt-5 "},
		{name: "a key of the configuration", config: namedModels, environment: "CLAUDE_KEY=k", flags: ModelFlags{Model: "cloud"}, want: "anthropic claude-sonnet-4-5 "},
		{name: "a variable that is not set", config: namedModels, flags: ModelFlags{Model: "unset"}, want: "environment variable NO_SUCH_VARIABLE is not set"},
		{name: "an entry that is wrong", config: namedModels, flags: ModelFlags{Model: "wrong"}, want: `did you mean "openai"?`},
		{name: "several, and none is meant", config: namedModels, want: "write --model with one of local, cloud, unset, bare, wrong"},
		{name: "one is meant", config: fmt.Sprintf(namedModels, `, "model": "local"`), want: "openai qwen3 http://localhost:11434/v1"},
		{name: "one is meant that there is not", config: fmt.Sprintf(namedModels, `, "model": "locl"`), want: "did you mean local?"},
		{name: "the only one", config: `{"models": {"local": {"model": "qwen3", "url": "http://localhost:11434/v1"}}}`, want: "openai qwen3 http://localhost:11434/v1"},
		{name: "flags beside a name", config: namedModels, flags: ModelFlags{Model: "local", Url: "http://localhost:2/v1"}, want: "do not go with local"},

		{name: "a session's name", config: namedModels, flags: ModelFlags{Model: "local", Again: true}, want: "openai qwen3 http://localhost:11434/v1"},
		{name: "a session's name that is gone", config: namedModels, environment: openAI + " " + local, flags: ModelFlags{Model: "locl", Again: true}, want: "the session's model locl is no longer in your configuration: name one with --model"},
		{name: "a session's id", config: namedModels, flags: ModelFlags{Model: "qwen3", Provider: "openai", Url: "http://localhost:2/v1", Again: true}, want: "openai qwen3 http://localhost:2/v1"},
		{name: "a session's id that is a name by now", config: namedModels, flags: ModelFlags{Model: "local", Provider: "openai", Url: "http://localhost:2/v1", Again: true}, want: "openai local http://localhost:2/v1"},
		{name: "a session's id at its provider's place", environment: openAI + " " + local, flags: ModelFlags{Model: "gpt-5", Provider: "openai", Again: true}, want: "openai gpt-5 https://api.openai.com/v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment := map[string]string{}
			for setting := range strings.FieldsSeq(test.environment) {
				name, value, _ := strings.Cut(setting, "=")
				environment[name] = value
			}
			file := strings.Replace(test.config, "%s", "", 1)
			if file == "" {
				file = "{}"
			}
			_, c, err := newTestRegistry(t, file, environment).Choose(test.flags)
			got := c.Provider + " " + c.Model + " " + c.URL
			if err != nil {
				if exit.Code(err) != exit.Usage {
					t.Errorf("the exit code is %d", exit.Code(err))
				}
				got = err.Error() + " " + exit.Advice(err)
			}
			if err == nil && got != test.want || !strings.Contains(got, test.want) {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

// A URL's query is sent with every request, as Azure and some proxies need it.
func TestModelQuery(t *testing.T) {
	for provider, want := range map[string]string{
		providerOpenAI: "/v1/chat/completions?api-version=2024&key=k", providerAnthropic: "/v1/messages?api-version=2024&key=k",
	} {
		asked := make(chan string, 1)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.String()
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer web.Close()
		for _, base := range []string{"/v1", "/v1/"} {
			r := newTestRegistry(t, "{}", nil)
			m, _, err := r.buildModel(config.Model{Model: "m", Provider: provider, URL: web.URL + base + "?key=k&api-version=2024"}, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range m.Reply(t.Context(), agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("hi")}}}}) {
				if err == nil || strings.Contains(err.Error(), "key=k") {
					t.Errorf("%s: %v", provider, err)
				}
			}
			if got := <-asked; got != want {
				t.Errorf("%s at %s: %s is asked, want %s", provider, base, got, want)
			}
		}
	}
}

// The cost of tokens is known if the model has a price. Cached input has a price of its own.
func TestCost(t *testing.T) {
	r := newTestRegistry(t, `{"models": {
		"priced": {"model": "qwen3", "url": "http://localhost:1/v1", "price": {"input": 2, "cached": 0.5, "output": 10}},
		"plain": {"model": "qwen3", "url": "http://localhost:1/v1", "price": {"input": 2, "output": 10}},
		"free": {"model": "qwen3", "url": "http://localhost:1/v1"}}}`, nil)
	u := agent.Usage{Input: 3_000_000, Cached: 2_000_000, Output: 100_000}
	for name, want := range map[string]string{"priced": "4.00 true", "plain": "7.00 true", "free": "0.00 false"} {
		_, chosen, err := r.Choose(ModelFlags{Model: name})
		if err != nil {
			t.Fatal(err)
		}
		cost, known := chosen.Cost(u)
		if got := fmt.Sprintf("%.2f %t", cost, known); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
