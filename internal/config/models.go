package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Model is a language model under a name of the user's.
type Model struct {
	Name string
	// At is where the name stands.
	At Position
	// Provider is openai, for all that speak its chat completions, or anthropic; empty: it is told from the rest.
	Provider string
	// Model is the provider's name for it.
	Model string
	// URL is where it is; empty: at the provider's own place. Key is shown there; empty: that of the environment, at the
	// provider's own place, and none elsewhere.
	URL, Key string
	// Window is how many tokens it takes, and MaxTokens bounds a reply; 0: as the provider has it.
	Window, MaxTokens int
	// Tools is native or prompt: whether the model calls tools by itself, or reads of them in the prompt; empty: native.
	Tools string
	// Reasoning says when what the model has thought goes back to it: with tools, always or never; empty: with tools. It is for
	// openai.
	Reasoning string
	// Thinking is how many tokens a reply may think, and negative where the model decides; 0: as the model has it. It is for
	// anthropic.
	Thinking int
	// TextOnly: the model takes neither images nor sounds. It is for openai.
	TextOnly bool
	// Strict has the server hold the model to the tools' schemas. It is for openai.
	Strict bool
	// Extra are further members of each request. It is for openai.
	Extra map[string]any
	// Problems are those of the entry. They are in [Set.Problems], too.
	Problems []Problem

	places map[string]Position
}

// Providers are what a model's provider can be.
var Providers = []string{"openai", "anthropic"}

var modelKeys = []string{"provider", "model", "url", "key", "window", "maxTokens", "tools", "reasoning", "thinking", "media", "strict", "extra"}

// mistakenModelKeys are what other tools call them.
var mistakenModelKeys = map[string]string{
	"baseurl": "url", "base_url": "url", "apibase": "url", "api_base": "url", "endpoint": "url", "host": "url",
	"apikey": "key", "api_key": "key", "token": "key", "id": "model", "name": "model", "type": "provider",
	"max_tokens": "maxTokens", "context": "window", "contextwindow": "window", "context_window": "window", "contextlength": "window",
}

// Where returns where a key of the entry stands; the name, where it is not there.
func (m *Model) Where(field string) Position {
	if at, ok := m.places[field]; ok {
		return at
	}
	return m.At
}

// models reads the key "models", which says where keys go, and is therefore the user's alone.
func (r *fileReader) models(n *node) (all []*Model) {
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
		if model := r.model(m); model.Name != "" { // nothing can refer to one without
			all = append(all, model)
		}
	}
	return all
}

func (r *fileReader) model(n member) *Model {
	m := &Model{Name: n.key.text, At: n.key.at}
	e := &entry{s: &Server{places: map[string]Position{}}, d: r.d}
	about := fmt.Sprintf("models.%s", m.Name)
	switch {
	case m.Name == "":
		e.errorf(m.At, "name the model", "a model has no name")
	case e.expect(about, n.value, objectNode):
		for _, field := range n.value.members {
			if field.value.kind != nullNode {
				e.modelMember(m, about, field)
			}
		}
		e.settleModel(m, about)
	}
	m.places, m.Problems = e.s.places, e.s.Problems
	r.problems = append(r.problems, m.Problems...)
	return m
}

func (e *entry) modelMember(m *Model, about string, field member) {
	key, name, n := field.key.text, about+"."+field.key.text, field.value
	switch key {
	case "provider":
		e.oneOf(name, n, Providers, &m.Provider)
	case "model":
		e.string(name, n, &m.Model)
	case "url":
		e.string(name, n, &m.URL)
	case "key":
		e.string(name, n, &m.Key)
	case "window":
		e.count(name, n, &m.Window)
	case "maxTokens":
		e.count(name, n, &m.MaxTokens)
	case "tools":
		e.oneOf(name, n, []string{"native", "prompt"}, &m.Tools)
	case "reasoning":
		e.oneOf(name, n, []string{"with tools", "always", "never"}, &m.Reasoning)
	case "thinking":
		e.thinking(name, n, &m.Thinking)
	case "media":
		media := true
		e.flag(name, n, &media)
		m.TextOnly = !media
	case "strict":
		e.flag(name, n, &m.Strict)
	case "extra":
		if e.place(name, n); e.expect(name, n, objectNode) {
			m.Extra, _ = n.value().(map[string]any)
		}
	default:
		e.mistaken(key, name, field.key.at)
		return
	}
	e.s.places[key] = n.at
}

// mistaken is a key that dowel does not know. Without the one that may be meant, the model's key and all that is said could go
// elsewhere.
func (e *entry) mistaken(key, name string, at Position) {
	other := cmp.Or(mistakenModelKeys[strings.ToLower(key)], nearest(key, modelKeys))
	hint := choose(cmp.Or(other, key), modelKeys)
	if other == "url" || other == "provider" || other == "key" {
		e.errorf(at, hint, "unknown key %q: without it the model could be another one, elsewhere", name)
		return
	}
	e.unknown(name, at, hint, "the key means nothing to dowel")
}

// settleModel looks at the entry as a whole.
func (e *entry) settleModel(m *Model, about string) {
	if m.Model == "" && !e.failed(e.s.places["model"]) {
		e.errorf(m.At, `add "model", the name by which the provider knows it`, "%s names no model", about)
	}
	if m.URL != "" && !strings.Contains(m.URL, "${") {
		if why := badURL(m.URL); why != "" {
			e.errorf(e.s.places["url"], "write a URL such as http://localhost:11434/v1", "%s.url %s", about, why)
		}
	}
	others := map[string][]string{"anthropic": {"tools", "reasoning", "media", "strict", "extra"}, "openai": {"thinking"}}
	for _, key := range others[m.Provider] {
		if e.has(key) {
			e.warnf(e.s.places[key], "remove it", "%s.%s has no effect on a model of %s", about, key, m.Provider)
		}
	}
}

// oneOf reads one of several words.
func (e *entry) oneOf(field string, n *node, words []string, into *string) {
	var text string
	e.string(field, n, &text)
	switch {
	case n.kind != stringNode:
	case !slices.Contains(words, text):
		e.errorf(n.at, choose(text, words), "%s cannot be %q", field, text)
	default:
		*into = text
	}
}

// count reads a whole number above zero.
func (e *entry) count(field string, n *node, into *int) {
	e.place(field, n)
	value, ok := n.number()
	if !ok || value != float64(int(value)) || value < 1 {
		e.errorf(n.at, "write a number such as 128000", "%s must be a whole number above zero", field)
		return
	}
	*into = int(value)
}

// thinking reads a number of tokens, or that the model decides.
func (e *entry) thinking(field string, n *node, into *int) {
	if n.kind == stringNode && n.text == "adaptive" {
		e.place(field, n)
		*into = -1
		return
	}
	if n.kind == stringNode {
		e.errorf(n.at, `write a number of tokens, or "adaptive"`, "%s cannot be %q", field, n.text)
		return
	}
	e.count(field, n, into)
}

// value returns what a node says as encoding/json has it.
func (n *node) value() any {
	switch n.kind {
	case boolNode:
		return n.text == "true"
	case numberNode:
		f, _ := n.number()
		return f
	case stringNode:
		return n.text
	case arrayNode:
		all := []any{}
		for _, item := range n.items {
			all = append(all, item.value())
		}
		return all
	case objectNode:
		all := map[string]any{}
		for _, m := range n.members {
			all[m.key.text] = m.value.value()
		}
		return all
	}
	return nil
}

// chosen reads the key "model", which names one of the models.
func (r *fileReader) chosen(n *node) (name string, at Position) {
	switch {
	case n == nil || n.kind == nullNode:
		return "", Position{}
	case n.kind != stringNode:
		r.errorf(n.at, `write the name of one of your models; models themselves stand under "models"`, "model must be a string, not %v", n.kind)
		return "", Position{}
	}
	return n.text, n.at
}

// addModels takes the models that no file before has named, and the first choice among them.
func (set *Set) addModels(c contents) {
	for _, m := range c.models {
		if set.LookupModel(m.Name) == nil {
			set.Models = append(set.Models, m)
		}
	}
	if c.model != "" {
		set.choices = append(set.choices, choice{c.model, c.modelAt, c.Scope})
	}
}

// choice is what a file says that is meant.
type choice struct {
	model string
	at    Position
	scope Scope
}

// settleDefault takes the first choice that there is. Of those of a project it is no error that the user does not have it.
func (set *Set) settleDefault() {
	for _, c := range set.choices {
		if set.LookupModel(c.model) != nil {
			set.DefaultModel = c.model
			return
		}
		p := Problem{Severity: Error, Position: c.at, Message: fmt.Sprintf("model: there is no model called %q", c.model), Hint: `name it under "models" in your own file`}
		if c.scope == Project {
			p.Severity = Warning
		}
		if known := set.ModelNames(); len(known) > 0 {
			p.Hint = choose(c.model, known)
		}
		set.Problems = append(set.Problems, p)
	}
	if len(set.choices) > 0 {
		set.DefaultModel = set.choices[0].model
	}
}

// LookupModel returns the model of a name, or nil.
func (set *Set) LookupModel(name string) *Model {
	if i := slices.IndexFunc(set.Models, func(m *Model) bool { return m.Name == name }); i >= 0 {
		return set.Models[i]
	}
	return nil
}

// ModelNames are those of the models, in the order of the files.
func (set *Set) ModelNames() (names []string) {
	for _, m := range set.Models {
		names = append(names, m.Name)
	}
	return names
}

// Resolve expands the variables of the model's strings. Where there are errors among the problems, those of the entry among
// them, the model cannot be used.
func (m *Model) Resolve(v Variables) (Model, []Problem) {
	x, resolved := expansion{v: v.complete()}, *m
	problems := slices.Clone(m.Problems)
	for _, s := range []struct {
		field string
		text  *string
	}{{"model", &resolved.Model}, {"url", &resolved.URL}, {"key", &resolved.Key}} {
		*s.text = x.text(*s.text)
		for _, missing := range x.missing {
			problems = append(problems, missing.problem(m.Where(s.field), fmt.Sprintf("models.%s.%s", m.Name, s.field), ""))
		}
		x.missing = nil
	}
	if why := badURL(resolved.URL); resolved.URL != "" && why != "" && strings.Contains(m.URL, "${") {
		problems = append(problems, Problem{Severity: Error, Position: m.Where("url"), Message: fmt.Sprintf("models.%s.url %s", m.Name, why)})
	}
	return resolved, problems
}
