// Package modelregistry finds the model that an agent works with. A name is one of the
// configuration's models, or otherwise the ID by which a provider knows the model. --model takes
// precedence over DOWEL_MODEL, and DOWEL_MODEL over the configuration's default. A key is sent only
// to the URL that it belongs to.
package modelregistry

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/modelkeys"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Names of the providers.
const (
	providerOpenAI    = "openai"
	providerAnthropic = "anthropic"
)

// providers holds each provider's URL, and the environment variables for another URL and for the
// key.
var providers = map[string]struct{ defaultURL, urlVariable, keyVariable string }{
	providerOpenAI:    {openai.DefaultBaseURL, "OPENAI_BASE_URL", "OPENAI_API_KEY"},
	providerAnthropic: {anthropic.DefaultBaseURL, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"},
}

// ModelVariable is the environment variable that names the model if --model is not given.
const ModelVariable = "DOWEL_MODEL"

// Help is the part of a command's help that explains how the model is chosen.
const Help = `--model, or else the variable DOWEL_MODEL, or else your configuration, names the model: a name under models in the configuration,
or the provider's own name. --provider selects the API. Without it, names that begin with claude use Anthropic's API; a --base-url
or OPENAI_BASE_URL means OpenAI's chat completions; otherwise the provider is the one with a key: ANTHROPIC_API_KEY or
OPENAI_API_KEY. Your own server, such as Ollama, needs no key. ANTHROPIC_BASE_URL changes the URL of Anthropic's API.`

// Choice describes the model that an agent works with.
type Choice struct {
	Name     string        // in the configuration; "" for a model that was named by its ID
	Provider string        // openai or anthropic
	Model    string        // the provider's ID of the model
	URL      string        // "" means the provider's own; may hold secrets
	Window   int           // context window in tokens; 0 means unknown
	Price    *config.Price // nil means unknown
}

// Cost returns the price of tokens in US dollars. ok is false if the model's price is unknown.
func (c Choice) Cost(u agent.Usage) (dollars float64, ok bool) {
	if c.Price == nil {
		return 0, false
	}
	return (float64(u.Input-u.Cached)*c.Price.Input + float64(u.Cached)*c.Price.Cached + float64(u.Output)*c.Price.Output) / 1e6, true
}

// Label returns the name by which the user chose the model.
func (c Choice) Label() string { return cmp.Or(c.Name, c.Model) }

// ModelFlags choose a model. The zero value chooses the default model.
type ModelFlags struct {
	Model, Provider, Url string
	// Again is set if the other fields come from a saved session. Then Model is a name of the
	// configuration if Provider is empty, and otherwise the provider's ID, at the provider's own
	// URL if Url is empty. The environment does not change the URL.
	Again bool
}

// Registry chooses models from a configuration and the environment. Make one with [New]. It is safe
// for concurrent use.
type Registry struct {
	Set    *config.Set
	warn   func(format string, args ...any)
	getenv func(string) string
}

// Named returns the name of the chosen model and the source of the choice: flag if it is not empty,
// [ModelVariable], or the configuration. Both are "" if no model is named.
func (r *Registry) Named(flag string) (name, from string) {
	switch {
	case flag != "":
		return flag, "--model"
	case r.getenv(ModelVariable) != "":
		return r.getenv(ModelVariable), ModelVariable
	case r.Set.DefaultModel != "":
		return r.Set.DefaultModel, fromConfiguration
	case len(r.Set.Models) == 1:
		return r.Set.Models[0].Name, fromConfiguration
	}
	return "", ""
}

// fromConfiguration is the source of a model that the configuration names.
const fromConfiguration = "your configuration"

// Choose returns the model that opts name, or the default model, ready for use. Errors are usage
// errors; [Registry.NoModelError] describes a missing model.
func (r *Registry) Choose(opts ModelFlags) (agent.Model, Choice, error) {
	name, from := r.Named(opts.Model)
	def := r.Set.LookupModel(name)
	if opts.Again && opts.Provider != "" {
		return r.resumeModel(opts)
	}
	if opts.Again && def == nil {
		return nil, Choice{}, exit.Usagef("the session's model %s is no longer in your configuration: name one with --model", term.Line(name))
	}
	hasEndpoint := opts.Provider != "" || opts.Url != ""
	switch {
	case name == "" || def == nil && from == fromConfiguration:
		return nil, Choice{}, r.NoModelError(opts)
	case def != nil && hasEndpoint && opts.Model == "":
		return nil, Choice{}, exit.Usagef("--provider and --base-url need --model")
	case def != nil && hasEndpoint:
		return nil, Choice{}, exit.Usagef("--provider and --base-url do not go with %s, a model of your configuration: %s", name, def.At)
	case def == nil:
		def = &config.Model{Name: "", Model: name, Provider: opts.Provider, URL: opts.Url}
		return r.buildModel(*def, true)
	}
	return r.buildDefined(def)
}

// buildDefined returns a model of the configuration.
func (r *Registry) buildDefined(def *config.Model) (agent.Model, Choice, error) {
	resolved, problems := def.Resolve(r.Set.Variables)
	for _, p := range problems {
		if p.Severity == config.Error {
			return nil, Choice{}, exit.UsageError{Err: fmt.Errorf("the model %s cannot be used: %s", def.Name, p.Text()), See: "dowel config check"}
		}
	}
	return r.buildModel(resolved, false)
}

// resumeModel returns the model of a saved session at its old URL, so that the session's messages
// go only to the server that had them before.
func (r *Registry) resumeModel(opts ModelFlags) (agent.Model, Choice, error) {
	if opts.Url == "" { // ignore the URL of the environment
		opts.Url = providers[opts.Provider].defaultURL
	}
	return r.buildModel(config.Model{Model: opts.Model, Provider: opts.Provider, URL: opts.Url}, true)
}

// buildModel returns the model that m describes. useEnvironment allows a URL from the environment,
// and the environment's key for any URL; it is set for models outside the configuration.
func (r *Registry) buildModel(m config.Model, useEnvironment bool) (agent.Model, Choice, error) {
	if m.Provider == "" {
		m.Provider = r.detectProvider(m)
	}
	if !slices.Contains(config.Providers, m.Provider) {
		return nil, Choice{}, exit.Usagef("--provider %s: write %s%s", m.Provider, strings.Join(config.Providers, " or "), suggest.ForFlag(m.Provider, config.Providers))
	}
	if useEnvironment && m.URL == "" {
		m.URL = r.getenv(providers[m.Provider].urlVariable)
	}
	if m.URL != "" {
		if u, err := url.Parse(m.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, Choice{}, exit.Usagef("the model's URL %s: write one such as http://localhost:11434/v1", secretmask.URL(m.URL))
		}
	}
	variable := providers[m.Provider].keyVariable
	if m.Key == "" && (useEnvironment || m.URL == "") {
		m.Key = r.getenv(variable)
	}
	if m.Key == "" && m.URL == "" {
		return nil, Choice{}, exit.UsageError{Err: fmt.Errorf("there is no key for %s: set %s, or give the model a key in your configuration; for your own server, give its URL with --base-url",
			m.Model, variable), See: "dowel models --help"}
	}
	model := r.newModel(m)
	return model, Choice{Name: m.Name, Provider: m.Provider, Model: m.Model, URL: m.URL, Window: model.Window(), Price: m.Price}, nil
}

// newModel returns the client of a model. The caller has completed the fields of m.
func (r *Registry) newModel(m config.Model) agent.Model {
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
		Reasoning: m.Reasoning, Strict: m.Strict, ToolsInPrompt: m.Tools == "prompt", Warn: warn,
	}
	if m.TextOnly {
		o.MaxMedia = -1
	}
	return openai.New(o)
}

// detectProvider returns the provider of a model without one, by the rules in [Help].
func (r *Registry) detectProvider(m config.Model) string {
	switch {
	case strings.HasPrefix(m.Model, "claude"):
		return providerAnthropic
	case m.URL != "", r.getenv("OPENAI_BASE_URL") != "":
		return providerOpenAI
	case r.getenv("OPENAI_API_KEY") == "" && r.getenv("ANTHROPIC_API_KEY") != "":
		return providerAnthropic
	}
	return providerOpenAI
}

// NoModelError returns a usage error for a missing model, with advice that fits the configuration
// and the keys of the environment.
func (r *Registry) NoModelError(opts ModelFlags) error {
	if r.Set.DefaultModel != "" {
		return exit.UsageError{Err: fmt.Errorf("the configuration's default model %q does not exist%s", r.Set.DefaultModel,
			suggest.Hint(r.Set.DefaultModel, r.Set.ModelNames())), See: "dowel config check"}
	}
	if names := r.Set.ModelNames(); len(names) > 0 {
		return exit.Usagef("no model is named: write --model with one of %s, or choose one in your dowel.json: \"model\": %q", strings.Join(names, ", "), names[0])
	}
	switch {
	case opts.Provider != "" || opts.Url != "":
		return exit.Usagef("no model is named: add --model with the name by which the provider knows it")
	case r.getenv("ANTHROPIC_API_KEY") != "" && r.getenv("OPENAI_API_KEY") == "":
		return exit.Usagef("no model is named: ANTHROPIC_API_KEY is set, so write --model with one of Anthropic's, such as claude-sonnet-4-5, or set %s", ModelVariable)
	case r.getenv("OPENAI_BASE_URL") != "":
		return exit.Usagef("no model is named: OPENAI_BASE_URL is set, so write --model with a model of that server, or set %s", ModelVariable)
	case r.getenv("OPENAI_API_KEY") != "":
		return exit.Usagef("no model is named: OPENAI_API_KEY is set, so write --model with one of OpenAI's, such as gpt-5, or set %s", ModelVariable)
	}
	return exit.UsageError{Err: errors.New(noModelHelp), See: "dowel models --help, and for models in your configuration https://github.com/dowel-mcp/dowel/blob/main/docs/guide-program.md"}
}

const noModelHelp = `there is no model to work with. Name one, and give its key if it needs one:
  OpenAI     export OPENAI_API_KEY=…         dowel run --model gpt-5 "…"
  Anthropic  export ANTHROPIC_API_KEY=…      dowel run --model claude-sonnet-4-5 "…"
  Ollama     ollama pull qwen3               dowel run --model qwen3 --base-url http://localhost:11434/v1 "…"
Set DOWEL_MODEL to leave out --model, or define models in your dowel.json:
  {"models": {"local": {"provider": "openai", "model": "qwen3", "url": "http://localhost:11434/v1"}}, "model": "local"}`

// New returns the registry of a configuration and the process's environment. set must not be nil.
func New(f *factory.Factory, set *config.Set) *Registry {
	return &Registry{Set: set, warn: f.Warn, getenv: modelkeys.Getenv}
}
