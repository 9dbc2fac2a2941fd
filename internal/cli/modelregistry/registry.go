// Package modelregistry finds the model that an agent works with. A name is one of the
// configuration's models, or else the id by which a provider knows the model. Flags come before the
// configuration, and the configuration before the environment; a key is sent only to the place that
// it belongs to.
package modelregistry

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
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
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

// ModelVariable names the model that is meant where no --model is given.
const ModelVariable = "DOWEL_MODEL"

// Help says how the model is chosen.
const Help = `The model is that of --model, else of the variable DOWEL_MODEL, else of your configuration: a name that stands under models
there, or the provider's own name for it. Whose it is says --provider; without it, names that begin with claude are
Anthropic's, what is at a --base-url or OPENAI_BASE_URL speaks OpenAI's chat completions, and otherwise a key decides, where
only one is set: ANTHROPIC_API_KEY or OPENAI_API_KEY. A server of your own, such as Ollama's, needs none. Where Anthropic's models
are reached through another server says ANTHROPIC_BASE_URL.`

// Choice is the model that an agent works with.
type Choice struct {
	Name     string // in the configuration; empty for one that is named by its id
	Provider string // openai or anthropic
	Model    string // the id that the provider knows
	URL      string // empty: the provider's own
	Window   int    // in tokens; 0: not known
}

// Label is how the user knows the model.
func (m Choice) Label() string { return cmp.Or(m.Name, m.Model) }

// ModelFlags say which model.
type ModelFlags struct {
	Model, Provider, Url string
	// again: they are those of a session that is gone on with, and mean what they meant then: without a provider a name of the
	// configuration, else an id and no name, at the provider's own place where there is no URL.
	Again bool
}

// Registry is where models are chosen from.
type Registry struct {
	Set    *config.Set
	warn   func(format string, args ...any)
	getenv func(string) string
}

// Named returns the name of the model that is meant, and who says so; empty where nobody does.
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

// fromConfiguration: a model is named by the configuration.
const fromConfiguration = "your configuration"

// Choose makes the model that is meant.
func (r *Registry) Choose(opts ModelFlags) (agent.Model, Choice, error) {
	name, from := r.Named(opts.Model)
	def := r.Set.LookupModel(name)
	if opts.Again && opts.Provider != "" {
		return r.resumeModel(opts)
	}
	if opts.Again && def == nil {
		return nil, Choice{}, exit.Usagef("the session's model %s is not in your configuration any more: name one with --model", term.Line(name))
	}
	alone := opts.Provider != "" || opts.Url != ""
	switch {
	case name == "" || def == nil && from == fromConfiguration:
		return nil, Choice{}, r.NoModelError(opts)
	case def != nil && alone && opts.Model == "":
		return nil, Choice{}, exit.Usagef("--provider and --base-url are for a model that is named with --model")
	case def != nil && alone:
		return nil, Choice{}, exit.Usagef("--provider and --base-url do not go with %s, which is one of your configuration's models: %s", name, def.At)
	case def == nil:
		def = &config.Model{Name: "", Model: name, Provider: opts.Provider, URL: opts.Url}
		return r.buildModel(*def, true)
	}
	return r.buildDefined(def)
}

// buildDefined makes a model of the configuration.
func (r *Registry) buildDefined(def *config.Model) (agent.Model, Choice, error) {
	resolved, problems := def.Resolve(r.Set.Variables)
	for _, p := range problems {
		if p.Severity == config.Error {
			return nil, Choice{}, exit.UsageError{Err: fmt.Errorf("the model %s cannot be used: %s", def.Name, p.Text()), See: "dowel config check"}
		}
	}
	return r.buildModel(resolved, false)
}

// resumeModel makes the model of a session, which is where it was: what was said there goes to nobody else.
func (r *Registry) resumeModel(opts ModelFlags) (agent.Model, Choice, error) {
	if opts.Url == "" { // and not that of the environment
		opts.Url = providers[opts.Provider].place
	}
	return r.buildModel(config.Model{Model: opts.Model, Provider: opts.Provider, URL: opts.Url}, true)
}

// buildModel makes a model. What the environment says of URLs counts for one that no configuration describes.
func (r *Registry) buildModel(m config.Model, environment bool) (agent.Model, Choice, error) {
	if m.Provider == "" {
		m.Provider = r.detectProvider(m)
	}
	if !slices.Contains(config.Providers, m.Provider) {
		return nil, Choice{}, exit.Usagef("--provider %s: write %s%s", m.Provider, strings.Join(config.Providers, " or "), suggest.ForFlag(m.Provider, config.Providers))
	}
	if environment && m.URL == "" {
		m.URL = r.getenv(providers[m.Provider].urlVariable)
	}
	if m.URL != "" {
		if u, err := url.Parse(m.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, Choice{}, exit.Usagef("the model's URL %s: write one such as http://localhost:11434/v1", urlmask.URL(m.URL))
		}
	}
	variable := providers[m.Provider].keyVariable
	if m.Key == "" && (environment || m.URL == "") {
		m.Key = r.getenv(variable)
	}
	if m.Key == "" && m.URL == "" {
		return nil, Choice{}, exit.UsageError{Err: fmt.Errorf("there is no key for %s: set %s, or give the model a key in your configuration; for a server of your own, say where it is with --base-url",
			m.Model, variable), See: "dowel models --help"}
	}
	made := r.newModel(m)
	return made, Choice{Name: m.Name, Provider: m.Provider, Model: m.Model, URL: m.URL, Window: made.Window()}, nil
}

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
		Reasoning: openai.Reasoning(m.Reasoning), Strict: m.Strict, ToolsInPrompt: m.Tools == "prompt", Warn: warn,
	}
	if m.TextOnly {
		o.MaxMedia = -1
	}
	return openai.New(o)
}

// detectProvider tells whose a model is; modelHelp says how.
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

// NoModelError says what to do where no model is named.
func (r *Registry) NoModelError(opts ModelFlags) error {
	if r.Set.DefaultModel != "" {
		return exit.UsageError{Err: fmt.Errorf("the configuration chooses the model %q, and there is none of that name%s", r.Set.DefaultModel,
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
		return exit.Usagef("no model is named: OPENAI_BASE_URL is set, so write --model with the name of one that is there, or set %s", ModelVariable)
	case r.getenv("OPENAI_API_KEY") != "":
		return exit.Usagef("no model is named: OPENAI_API_KEY is set, so write --model with one of OpenAI's, such as gpt-5, or set %s", ModelVariable)
	}
	return exit.UsageError{Err: errors.New(noModelHelp), See: "dowel models --help, and for models under names of your own docs/guide-program.md"}
}

const noModelHelp = `there is no model to work with. Name one, and give its key where it needs one:
  OpenAI     export OPENAI_API_KEY=sk-…      dowel run --model gpt-5 "…"
  Anthropic  export ANTHROPIC_API_KEY=sk-…   dowel run --model claude-sonnet-4-5 "…"
  Ollama     ollama pull qwen3               dowel run --model qwen3 --base-url http://localhost:11434/v1 "…"
DOWEL_MODEL keeps --model for you, and your dowel.json has room for all three:
  {"models": {"local": {"provider": "openai", "model": "qwen3", "url": "http://localhost:11434/v1"}}, "model": "local"}`

// New is the models of a configuration, and those of the environment.
func New(f *factory.Factory, set *config.Set) *Registry {
	return &Registry{Set: set, warn: f.Warn, getenv: os.Getenv}
}
