// Package models implements dowel models, which lists the models of the configuration. With --check
// it asks each of them for one word, to find out whether it answers.
package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel models. f must not be nil.
func NewCommand(f *factory.Factory) *cobra.Command {
	var places factory.Places
	var check bool
	cmd := &cobra.Command{
		Use:   "models [NAME…]",
		Short: "List the models for run and chat, and check that they answer",
		Long: `List the models of your configuration and the model of DOWEL_MODEL: the default model (*), its URL, and whether it has a key.
--check asks all models, or the named ones, for one word each and shows the result. If a model fails, the exit code is 1.

` + modelregistry.Help,
		Example: `  dowel models
  dowel models --check local
  dowel models --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			return listModels(cmd.Context(), f, places, names, check)
		},
	}
	places.AddFlags(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "ask each of them for one word")
	return cmd
}

// ModelLine is a model in the JSON output of dowel models.
type ModelLine struct {
	Name     string `json:"name"`
	Chosen   bool   `json:"chosen"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	URL      string `json:"url,omitzero"`
	Problem  string `json:"problem,omitzero"` // why the model cannot be used; empty if it can
	Checked  bool   `json:"checked,omitzero"`
	TookMS   int64  `json:"tookMs,omitzero"`

	model agent.Model
}

// listModels lists the models with the given names. No names mean all models. It checks them if
// check is set. A failed check is an error.
func listModels(ctx context.Context, f *factory.Factory, places factory.Places, names []string, check bool) error {
	o, err := places.ConfigOptions()
	if err != nil {
		return err
	}
	r := modelregistry.New(f, config.Load(o))
	lines, err := selectModels(r, names)
	if err != nil {
		return err
	}
	if len(lines) == 0 && !f.JSON {
		fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(r.NoModelError(modelregistry.ModelFlags{}).Error()))
		return nil
	}
	failed := 0
	for i := range lines {
		if l := &lines[i]; check {
			l.checkModel(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if lines[i].Problem != "" {
			failed++
		}
	}
	if err := showModels(f, lines); err != nil || !check || failed == 0 {
		return err
	}
	return errModels(failed)
}

// errModels is the number of models that failed. The list has shown their errors.
type errModels int

// Error implements [error].
func (n errModels) Error() string { return display.Count(int(n), "model") + " cannot be used" }

// selectModels returns the models with the given names, or all models of the configuration and the
// environment if names is empty.
func selectModels(r *modelregistry.Registry, names []string) (all []ModelLine, err error) {
	chosen, _ := r.Named("")
	known := r.Set.ModelNames()
	if chosen != "" && !slices.Contains(known, chosen) && r.Set.DefaultModel != chosen {
		known = append(known, chosen)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exit.Usagef("your configuration has no model %s%s", term.Line(name), suggest.ForFlag(name, known))
		}
	}
	for _, name := range known {
		if len(names) == 0 || slices.Contains(names, name) {
			l := ModelLine{Name: name, Chosen: name == chosen}
			describeModel(r, &l)
			all = append(all, l)
		}
	}
	return all, nil
}

// describeModel fills in a line from the model's name: the model, or the problem of using it.
func describeModel(r *modelregistry.Registry, l *ModelLine) {
	model, chosen, err := r.Choose(modelregistry.ModelFlags{Model: l.Name})
	if err != nil {
		l.Problem = err.Error()
		if def := r.Set.LookupModel(l.Name); def != nil {
			l.Provider, l.Model, l.URL = def.Provider, def.Model, secretmask.URL(def.URL)
		}
		return
	}
	l.model, l.Provider, l.Model, l.URL = model, chosen.Provider, chosen.Model, secretmask.URL(chosen.URL)
}

// checkTimeout limits one check. It is long because a local server may load the model first.
const checkTimeout = 2 * time.Minute

// checkModel asks the model for one word and records the time or the problem.
func (l *ModelLine) checkModel(ctx context.Context) {
	if l.model == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("it did not answer within %s", display.Duration(checkTimeout)))
	defer cancel()
	start, answered := time.Now(), false
	c := agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("Answer with the word yes.")}}}}
	for delta, err := range l.model.Reply(ctx, c) {
		if err != nil {
			l.Problem = cmp.Or(context.Cause(ctx), err).Error()
		}
		answered = answered || delta.Message != nil
	}
	if !answered && l.Problem == "" {
		l.Problem = "it did not answer"
	}
	l.Checked, l.TookMS = true, time.Since(start).Milliseconds()
}

func showModels(f *factory.Factory, lines []ModelLine) error {
	if f.JSON {
		if lines == nil {
			lines = []ModelLine{}
		}
		return f.WriteValue(map[string]any{"models": lines})
	}
	rows := [][]string{{"", "NAME", "PROVIDER", "MODEL", "URL", "STATE"}}
	for _, l := range lines {
		rows = append(rows, l.formatCells())
	}
	for i, text := range f.Stdout.Table(rows) {
		fmt.Fprintln(f.Stdout, text)
		if i == 0 {
			continue
		}
		const indent = "    "
		for _, why := range term.Wrap(strings.Fields(term.Line(lines[i-1].Problem)), f.Stdout.Width()-len(indent)) {
			fmt.Fprintln(f.Stdout, f.Stdout.Dim(indent+why))
		}
	}
	return nil
}

func (l *ModelLine) formatCells() []string {
	mark, state := "", "ready"
	if l.Chosen {
		mark = "*"
	}
	switch {
	case l.Problem != "":
		state = "cannot be used"
	case l.Checked:
		state = "answers in " + display.Duration(time.Duration(l.TookMS)*time.Millisecond)
	}
	return []string{mark, term.Line(l.Name), l.Provider, term.Line(l.Model), term.Line(cmp.Or(l.URL, "-")), state}
}
