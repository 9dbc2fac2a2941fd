package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/urlmask"
)

// The providers' names.
const (
	providerOpenAI    = "openai"
	providerAnthropic = "anthropic"
)

// providers are where each is, and the variables that say where else, and what its key is.
var providers = map[string]struct{ place, urlVariable, keyVariable string }{
	providerOpenAI:    {openai.DefaultBaseURL, "OPENAI_BASE_URL", "OPENAI_API_KEY"},
	providerAnthropic: {anthropic.DefaultBaseURL, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"},
}

// modelVariable names the model that is meant where no --model is given.
const modelVariable = "DOWEL_MODEL"

// modelHelp says how the model is chosen.
const modelHelp = `The model is that of --model, else of the variable DOWEL_MODEL, else of your configuration: a name that stands under models
there, or the provider's own name for it. Whose it is says --provider; without it, names that begin with claude are
Anthropic's, what is at a --base-url or OPENAI_BASE_URL speaks OpenAI's chat completions, and otherwise a key decides, where
only one is set: ANTHROPIC_API_KEY or OPENAI_API_KEY. A server of your own, such as Ollama's, needs none. Where Anthropic's models
are reached through another server says ANTHROPIC_BASE_URL.`

// chosenModel is the model that an agent works with.
type chosenModel struct {
	Name     string // in the configuration; empty for one that is named by its id
	Provider string // openai or anthropic
	Model    string // the id that the provider knows
	URL      string // empty: the provider's own
	Window   int    // in tokens; 0: not known
}

// label is how the user knows the model.
func (m chosenModel) label() string { return cmp.Or(m.Name, m.Model) }

// modelFlags say which model.
type modelFlags struct {
	model, provider, url string
	// again: they are those of a session that is gone on with, and mean what they meant then: without a provider a name of the
	// configuration, else an id and no name, at the provider's own place where there is no URL.
	again bool
}

// roster is where models are chosen from.
type roster struct {
	set  *config.Set
	warn func(format string, args ...any)
	env  func(string) string
}

// named returns the name of the model that is meant, and who says so; empty where nobody does.
func (r *roster) named(flag string) (name, from string) {
	switch {
	case flag != "":
		return flag, "--model"
	case r.env(modelVariable) != "":
		return r.env(modelVariable), modelVariable
	case r.set.DefaultModel != "":
		return r.set.DefaultModel, byConfiguration
	case len(r.set.Models) == 1:
		return r.set.Models[0].Name, byConfiguration
	}
	return "", ""
}

// byConfiguration: a model is named by the configuration.
const byConfiguration = "your configuration"

// choose makes the model that is meant.
func (r *roster) choose(f modelFlags) (agent.Model, chosenModel, error) {
	name, from := r.named(f.model)
	def := r.set.LookupModel(name)
	if f.again && f.provider != "" {
		return r.again(f)
	}
	if f.again && def == nil {
		return nil, chosenModel{}, usagef("the session's model %s is not in your configuration any more: name one with --model", line(name))
	}
	alone := f.provider != "" || f.url != ""
	switch {
	case name == "" || def == nil && from == byConfiguration:
		return nil, chosenModel{}, r.unnamed(f)
	case def != nil && alone && f.model == "":
		return nil, chosenModel{}, usagef("--provider and --base-url are for a model that is named with --model")
	case def != nil && alone:
		return nil, chosenModel{}, usagef("--provider and --base-url do not go with %s, which is one of your configuration's models: %s", name, def.At)
	case def == nil:
		def = &config.Model{Name: "", Model: name, Provider: f.provider, URL: f.url}
		return r.make(*def, true)
	}
	return r.defined(def)
}

// defined makes a model of the configuration.
func (r *roster) defined(def *config.Model) (agent.Model, chosenModel, error) {
	resolved, problems := def.Resolve(r.set.Variables)
	for _, p := range problems {
		if p.Severity == config.Error {
			return nil, chosenModel{}, usageError{err: fmt.Errorf("the model %s cannot be used: %s", def.Name, p.Text()), see: "dowel config check"}
		}
	}
	return r.make(resolved, false)
}

// again makes the model of a session, which is where it was: what was said there goes to nobody else.
func (r *roster) again(f modelFlags) (agent.Model, chosenModel, error) {
	if f.url == "" { // and not that of the environment
		f.url = providers[f.provider].place
	}
	return r.make(config.Model{Model: f.model, Provider: f.provider, URL: f.url}, true)
}

// make makes a model. What the environment says of URLs counts for one that no configuration describes.
func (r *roster) make(m config.Model, environment bool) (agent.Model, chosenModel, error) {
	if m.Provider == "" {
		m.Provider = r.provider(m)
	}
	if !slices.Contains(config.Providers, m.Provider) {
		return nil, chosenModel{}, usagef("--provider %s: write %s%s", m.Provider, strings.Join(config.Providers, " or "), meant(m.Provider, config.Providers))
	}
	if environment && m.URL == "" {
		m.URL = r.env(providers[m.Provider].urlVariable)
	}
	if m.URL != "" {
		if u, err := url.Parse(m.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, chosenModel{}, usagef("the model's URL %s: write one such as http://localhost:11434/v1", urlmask.URL(m.URL))
		}
	}
	variable := providers[m.Provider].keyVariable
	if m.Key == "" && (environment || m.URL == "") {
		m.Key = r.env(variable)
	}
	if m.Key == "" && m.URL == "" {
		return nil, chosenModel{}, usageError{err: fmt.Errorf("there is no key for %s: set %s, or give the model a key in your configuration; for a server of your own, say where it is with --base-url",
			m.Model, variable), see: "dowel models --help"}
	}
	made := r.provided(m)
	return made, chosenModel{Name: m.Name, Provider: m.Provider, Model: m.Model, URL: m.URL, Window: made.Window()}, nil
}

func (r *roster) provided(m config.Model) agent.Model {
	warn := func(text string) { r.warn("%s", text) }
	if m.Provider == providerAnthropic {
		o := anthropic.Options{
			Model: m.Model, Key: m.Key, BaseURL: m.URL,
			Window: m.Window, MaxTokens: m.MaxTokens, Thinking: m.Thinking, Warn: warn,
		}
		if m.Thinking < 0 {
			o.Thinking = anthropic.Adaptive
		}
		return anthropic.New(o)
	}
	o := openai.Options{
		Model: m.Model, Key: m.Key, BaseURL: m.URL, Window: m.Window, MaxTokens: m.MaxTokens, Extra: m.Extra,
		Reasoning: openai.Reasoning(m.Reasoning), Strict: m.Strict, ToolsInPrompt: m.Tools == "prompt", Warn: warn,
	}
	if m.TextOnly {
		o.MaxMedia = -1
	}
	return openai.New(o)
}

// provider tells whose a model is; modelHelp says how.
func (r *roster) provider(m config.Model) string {
	switch {
	case strings.HasPrefix(m.Model, "claude"):
		return providerAnthropic
	case m.URL != "", r.env("OPENAI_BASE_URL") != "":
		return providerOpenAI
	case r.env("OPENAI_API_KEY") == "" && r.env("ANTHROPIC_API_KEY") != "":
		return providerAnthropic
	}
	return providerOpenAI
}

// unnamed says what to do where no model is named.
func (r *roster) unnamed(f modelFlags) error {
	if r.set.DefaultModel != "" {
		return usageError{err: fmt.Errorf("the configuration chooses the model %q, and there is none of that name%s", r.set.DefaultModel,
			suggestion(r.set.DefaultModel, r.set.ModelNames())), see: "dowel config check"}
	}
	if names := r.set.ModelNames(); len(names) > 0 {
		return usagef("no model is named: write --model with one of %s, or choose one in your dowel.json: \"model\": %q", strings.Join(names, ", "), names[0])
	}
	switch {
	case f.provider != "" || f.url != "":
		return usagef("no model is named: add --model with the name by which the provider knows it")
	case r.env("ANTHROPIC_API_KEY") != "" && r.env("OPENAI_API_KEY") == "":
		return usagef("no model is named: ANTHROPIC_API_KEY is set, so write --model with one of Anthropic's, such as claude-sonnet-4-5, or set %s", modelVariable)
	case r.env("OPENAI_BASE_URL") != "":
		return usagef("no model is named: OPENAI_BASE_URL is set, so write --model with the name of one that is there, or set %s", modelVariable)
	case r.env("OPENAI_API_KEY") != "":
		return usagef("no model is named: OPENAI_API_KEY is set, so write --model with one of OpenAI's, such as gpt-5, or set %s", modelVariable)
	}
	return usageError{err: errors.New(noModel), see: "dowel models --help, and for models under names of your own docs/guide-program.md"}
}

const noModel = `there is no model to work with. Name one, and give its key where it needs one:
  OpenAI     export OPENAI_API_KEY=sk-…      dowel run --model gpt-5 "…"
  Anthropic  export ANTHROPIC_API_KEY=sk-…   dowel run --model claude-sonnet-4-5 "…"
  Ollama     ollama pull qwen3               dowel run --model qwen3 --base-url http://localhost:11434/v1 "…"
DOWEL_MODEL keeps --model for you, and your dowel.json has room for all three:
  {"models": {"local": {"provider": "openai", "model": "qwen3", "url": "http://localhost:11434/v1"}}, "model": "local"}`

// newRoster is the models of a configuration, and those of the environment.
func (a *app) newRoster(set *config.Set) *roster {
	return &roster{set: set, warn: a.warn, env: os.Getenv}
}
