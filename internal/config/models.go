package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Model is a language model under a name that the user chose.
type Model struct {
	Name string
	// At is the position of the name.
	At Position
	// Provider is "anthropic", or "openai" for all servers with its chat completions API. If it is
	// empty, it is derived from the other fields.
	Provider string
	// Model is the provider's name of the model.
	Model string
	// URL is the base URL; empty means the provider's own. Key is the API key; empty means the key
	// in the environment for the provider's own URL, and no key elsewhere.
	URL, Key string
	// Window is the size of the context in tokens. MaxTokens limits a reply. 0 means the provider's
	// default.
	Window, MaxTokens int
	// Tools is "native" if the model calls tools itself, or "prompt" if tools are described in the
	// prompt. Empty means native.
	Tools string
	// Reasoning says when the model's earlier reasoning is sent back to it: "with tools", "always"
	// or "never". Empty means with tools. For openai only.
	Reasoning string
	// Thinking limits the tokens for thinking in a reply. A negative value lets the model decide, 0
	// means the model's default. For anthropic only.
	Thinking int
	// TextOnly means that the model accepts neither images nor sounds. For openai only.
	TextOnly bool
	// Strict makes the server enforce the tools' schemas. For openai only.
	Strict bool
	// Extra are additional members of each request. For openai only.
	Extra map[string]any
	// Price is the price of the tokens, or nil if it is unknown.
	Price *Price
	// Problems are the problems of the entry. They are in [Set.Problems] too.
	Problems []Problem

	positions map[string]Position
}

// Price is the price of a million tokens of each kind, in US dollars.
type Price struct {
	Input, Output float64
	// Cached is the price of input from the provider's cache, by default Input.
	Cached float64
}

// Providers are the values of [Model.Provider].
var Providers = []string{"openai", "anthropic"}

var modelKeys = []string{"provider", "model", "url", "key", "window", "maxTokens", "tools", "reasoning", "thinking", "media", "strict", "extra", "price"}

// mistakenModelKeys are the names of these keys in other tools.
var mistakenModelKeys = map[string]string{
	"baseurl": "url", "base_url": "url", "apibase": "url", "api_base": "url", "endpoint": "url", "host": "url",
	"apikey": "key", "api_key": "key", "token": "key", "id": "model", "name": "model", "type": "provider",
	"max_tokens": "maxTokens", "context": "window", "contextwindow": "window", "context_window": "window", "contextlength": "window",
}

// Where returns the position of a key of the entry, or the position of the name if the key is
// missing.
func (m *Model) Where(field string) Position {
	if at, ok := m.positions[field]; ok {
		return at
	}
	return m.At
}

// readModels reads the key models. It is ignored in a project, because it decides where API keys
// are sent.
func (r *fileReader) readModels(n *node) (all []*Model) {
	switch {
	case n == nil || n.kind == nullNode:
		return nil
	case r.source.Scope == Project:
		r.warnf(n.at, `write them into the user's file; a project may choose one of them by its name, with "model"`, "models has no effect in a project, which must not decide where keys go")
		return nil
	case n.kind != objectNode:
		r.errorf(n.at, `write an object such as {"NAME": {"provider": "openai", "model": "ID"}}`, "models must be an object, not %v", n.kind)
		return nil
	}
	for _, m := range n.members {
		if model := r.readModel(m); model.Name != "" { // a model without a name cannot be referred to
			all = append(all, model)
		}
	}
	return all
}

// readModel reads one model.
func (r *fileReader) readModel(n member) *Model {
	m := &Model{Name: n.key.text, At: n.key.at}
	e := &entryReader{s: &Server{positions: map[string]Position{}}, d: r.d}
	about := fmt.Sprintf("models.%s", m.Name)
	switch {
	case m.Name == "":
		e.errorf(m.At, "name the model", "a model has no name")
	case e.expectKind(about, n.value, objectNode):
		for _, field := range n.value.members {
			if field.value.kind != nullNode {
				e.readModelMember(m, about, field)
			}
		}
		e.checkModel(m, about)
	}
	m.positions, m.Problems = e.s.positions, e.s.Problems
	r.problems = append(r.problems, m.Problems...)
	return m
}

func (e *entryReader) readModelMember(m *Model, about string, field member) {
	key, name, n := field.key.text, about+"."+field.key.text, field.value
	switch key {
	case "provider":
		e.readOneOf(name, n, Providers, &m.Provider)
	case "model":
		e.readString(name, n, &m.Model)
	case "url":
		e.readString(name, n, &m.URL)
	case "key":
		e.readString(name, n, &m.Key)
	case "window":
		e.readCount(name, n, &m.Window)
	case "maxTokens":
		e.readCount(name, n, &m.MaxTokens)
	case "tools":
		e.readOneOf(name, n, []string{"native", "prompt"}, &m.Tools)
	case "reasoning":
		e.readOneOf(name, n, []string{"with tools", "always", "never"}, &m.Reasoning)
	case "thinking":
		e.readThinking(name, n, &m.Thinking)
	case "media":
		media := true
		e.readBool(name, n, &media)
		m.TextOnly = !media
	case "strict":
		e.readBool(name, n, &m.Strict)
	case "extra":
		if e.recordPosition(name, n); e.expectKind(name, n, objectNode) {
			m.Extra, _ = n.jsonValue().(map[string]any)
		}
	case "price":
		e.readPrice(name, n, m)
	default:
		e.reportUnknownModelKey(key, name, field.key.at)
		return
	}
	e.s.positions[key] = n.at
}

// reportUnknownModelKey reports an unknown key. It is an error if the key probably means url,
// provider or key: without them the API key and the conversation could go to another server.
func (e *entryReader) reportUnknownModelKey(key, name string, at Position) {
	other := cmp.Or(mistakenModelKeys[strings.ToLower(key)], nearestName(key, modelKeys))
	hint := suggestOrList(cmp.Or(other, key), modelKeys)
	if other == "url" || other == "provider" || other == "key" {
		e.errorf(at, hint, "unknown key %q: without it requests could go to another server", name)
		return
	}
	e.addUnknown(name, at, hint, "dowel does not know this key")
}

// checkModel checks the entry as a whole.
func (e *entryReader) checkModel(m *Model, about string) {
	if m.Model == "" && !e.hasError(e.s.positions["model"]) {
		e.errorf(m.At, `add "model", the name by which the provider knows it`, "%s names no model", about)
	}
	if m.URL != "" && !strings.Contains(m.URL, "${") {
		if why := urlProblem(m.URL, HTTP); why != "" {
			e.errorf(e.s.positions["url"], "write a URL such as http://localhost:11434/v1", "%s.url %s", about, why)
		}
	}
	others := map[string][]string{"anthropic": {"tools", "reasoning", "media", "strict", "extra"}, "openai": {"thinking"}}
	for _, key := range others[m.Provider] {
		if e.hasField(key) {
			e.warnf(e.s.positions[key], "remove it", "%s.%s has no effect on a model of %s", about, key, m.Provider)
		}
	}
}

// readOneOf reads one of several words.
func (e *entryReader) readOneOf(field string, n *node, words []string, into *string) {
	var text string
	e.readString(field, n, &text)
	switch {
	case n.kind != stringNode:
	case !slices.Contains(words, text):
		e.errorf(n.at, suggestOrList(text, words), "%s cannot be %q", field, text)
	default:
		*into = text
	}
}

// readCount reads a whole number above zero.
func (e *entryReader) readCount(field string, n *node, into *int) {
	e.recordPosition(field, n)
	value, ok := n.parseNumber()
	if !ok || value != float64(int(value)) || value < 1 {
		e.errorf(n.at, "write a number such as 128000", "%s must be a whole number above zero", field)
		return
	}
	*into = int(value)
}

// readPrice reads the price of a model.
func (e *entryReader) readPrice(field string, n *node, m *Model) {
	if e.recordPosition(field, n); !e.expectKind(field, n, objectNode) {
		return
	}
	values := map[string]float64{}
	for _, part := range n.members {
		name := part.key.text
		value, ok := part.value.parseNumber()
		switch {
		case !slices.Contains(priceKeys, name):
			e.errorf(part.key.at, suggestOrList(name, priceKeys), "unknown key %q", field+"."+name)
			return
		case !ok || value < 0:
			e.errorf(part.value.at, "write US dollars for a million tokens, such as 2.5", "%s.%s must be a number, not below zero", field, name)
			return
		}
		values[name] = value
	}
	for _, name := range priceKeys[:2] {
		if _, ok := values[name]; !ok {
			e.errorf(n.at, `write US dollars for a million tokens: {"input": 3, "output": 15}, and "cached" if it differs`, "%s has no %q", field, name)
			return
		}
	}
	cached, ok := values["cached"]
	if !ok {
		cached = values["input"]
	}
	m.Price = &Price{Input: values["input"], Output: values["output"], Cached: cached}
}

// priceKeys are the members of a price. The first two are required.
var priceKeys = []string{"input", "output", "cached"}

// readThinking reads a number of tokens, or "adaptive".
func (e *entryReader) readThinking(field string, n *node, into *int) {
	if n.kind == stringNode && n.text == "adaptive" {
		e.recordPosition(field, n)
		*into = -1
		return
	}
	if n.kind == stringNode {
		e.errorf(n.at, `write a number of tokens, or "adaptive"`, "%s cannot be %q", field, n.text)
		return
	}
	e.readCount(field, n, into)
}

// jsonValue returns the value of n in the types of encoding/json.
func (n *node) jsonValue() any {
	switch n.kind {
	case boolNode:
		return n.text == "true"
	case numberNode:
		f, _ := n.parseNumber()
		return f
	case stringNode:
		return n.text
	case arrayNode:
		all := []any{}
		for _, item := range n.items {
			all = append(all, item.jsonValue())
		}
		return all
	case objectNode:
		all := map[string]any{}
		for _, m := range n.members {
			all[m.key.text] = m.value.jsonValue()
		}
		return all
	}
	return nil
}

// readModelChoice reads the key model, which names one of the models.
func (r *fileReader) readModelChoice(n *node) (name string, at Position) {
	switch {
	case n == nil || n.kind == nullNode:
		return "", Position{}
	case n.kind != stringNode:
		r.errorf(n.at, `write the name of one of your models; models are defined under "models"`, "model must be a string, not %v", n.kind)
		return "", Position{}
	}
	return n.text, n.at
}

// addModels adds the models whose names are new, and the file's choice of a default.
func (set *Set) addModels(c fileContents) {
	for _, m := range c.models {
		if set.LookupModel(m.Name) == nil {
			set.Models = append(set.Models, m)
		}
	}
	if c.model != "" {
		set.modelChoices = append(set.modelChoices, modelChoice{c.model, c.modelAt, c.Scope})
	}
}

// modelChoice is the value of the key model in one file.
type modelChoice struct {
	model string
	at    Position
	scope Scope
}

// chooseDefaultModel takes the first choice that exists. A missing model is an error, but only a
// warning if a project chose it.
func (set *Set) chooseDefaultModel() {
	for _, c := range set.modelChoices {
		if set.LookupModel(c.model) != nil {
			set.DefaultModel = c.model
			return
		}
		p := Problem{Severity: Error, Position: c.at, Message: fmt.Sprintf("model: no model is called %q", c.model), Hint: `name it under "models" in your own file`}
		if c.scope == Project {
			p.Severity = Warning
		}
		if known := set.ModelNames(); len(known) > 0 {
			p.Hint = suggestOrList(c.model, known)
		}
		set.Problems = append(set.Problems, p)
	}
	if len(set.modelChoices) > 0 {
		set.DefaultModel = set.modelChoices[0].model
	}
}

// LookupModel returns the model with a name, or nil.
func (set *Set) LookupModel(name string) *Model {
	if i := slices.IndexFunc(set.Models, func(m *Model) bool { return m.Name == name }); i >= 0 {
		return set.Models[i]
	}
	return nil
}

// ModelNames returns the names of the models in the order of the files.
func (set *Set) ModelNames() (names []string) {
	for _, m := range set.Models {
		names = append(names, m.Name)
	}
	return names
}

// Resolve expands the variables of the model's strings. The problems include the entry's own. If
// one of them is an error, the model cannot be used.
func (m *Model) Resolve(v Variables) (Model, []Problem) {
	x, resolved := expansion{v: v.withDefaults()}, *m
	problems := slices.Clone(m.Problems)
	for _, s := range []struct {
		field string
		text  *string
	}{{"model", &resolved.Model}, {"url", &resolved.URL}, {"key", &resolved.Key}} {
		*s.text = x.expandText(*s.text)
		for _, missing := range x.missing {
			problems = append(problems, missing.toProblem(m.Where(s.field), fmt.Sprintf("models.%s.%s", m.Name, s.field), ""))
		}
		x.missing = nil
	}
	if why := urlProblem(resolved.URL, HTTP); resolved.URL != "" && why != "" && strings.Contains(m.URL, "${") {
		problems = append(problems, Problem{Severity: Error, Position: m.Where("url"), Message: fmt.Sprintf("models.%s.url %s", m.Name, why)})
	}
	return resolved, problems
}
