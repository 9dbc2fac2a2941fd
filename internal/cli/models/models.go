// Package models is dowel models: the models of the configuration, and a test whether one answers.
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
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func NewCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var check bool
	cmd := &cobra.Command{
		Use:   "models [NAME…]",
		Short: "List the models that run and chat can work with, and try them out",
		Long: `List the models of your configuration, and the one that is named by DOWEL_MODEL: which of them is meant where no --model is
given (*), where it is, and whether there is a key. With --check each of them, or of those that you name, is asked for one
word: what comes of it is told, and where one fails the exit code is 1.

` + modelregistry.Help,
		Example: `  dowel models
  dowel models --check local
  dowel models --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			return listModels(cmd.Context(), f, where, names, check)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "ask each of them for one word")
	return cmd
}

// ModelLine is a model as a program reads it.
type ModelLine struct {
	Name     string `json:"name"`
	Chosen   bool   `json:"chosen"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	URL      string `json:"url,omitzero"`
	Problem  string `json:"problem,omitzero"` // why it cannot be used
	Checked  bool   `json:"checked,omitzero"`
	TookMS   int64  `json:"tookMs,omitzero"`

	model agent.Model
}

func listModels(ctx context.Context, f *factory.Factory, where factory.Places, names []string, check bool) error {
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	r := modelregistry.New(f, config.Load(o))
	lines, err := selectModels(r, names)
	if err != nil {
		return err
	}
	if len(lines) == 0 && !f.JSON {
		fmt.Fprintln(f.Stderr, r.NoModelError(modelregistry.ModelFlags{}))
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

// errModels says that models have failed, which was shown.
type errModels int

func (n errModels) Error() string { return display.Count(int(n), "model") + " cannot be used" }

// selectModels are the models of the configuration and the one that the environment names, or those of the names.
func selectModels(r *modelregistry.Registry, names []string) (all []ModelLine, err error) {
	chosen, _ := r.Named("")
	known := r.Set.ModelNames()
	if chosen != "" && !slices.Contains(known, chosen) && r.Set.DefaultModel != chosen {
		known = append(known, chosen)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exit.Usagef("there is no model %s in your configuration%s", term.Line(name), suggest.ForFlag(name, known))
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

// describeModel looks at what is behind a name.
func describeModel(r *modelregistry.Registry, l *ModelLine) {
	made, chosen, err := r.Choose(modelregistry.ModelFlags{Model: l.Name})
	if err != nil {
		l.Problem = err.Error()
		if def := r.Set.LookupModel(l.Name); def != nil {
			l.Provider, l.Model, l.URL = def.Provider, def.Model, urlmask.URL(def.URL)
		}
		return
	}
	l.model, l.Provider, l.Model, l.URL = made, chosen.Provider, chosen.Model, urlmask.URL(chosen.URL)
}

// checkTimeout is how long a model may take for one word; those at home may have to be loaded first.
const checkTimeout = 2 * time.Minute

// checkModel asks the model for a word.
func (l *ModelLine) checkModel(ctx context.Context) {
	if l.model == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("it has not answered within %s", display.Duration(checkTimeout)))
	defer cancel()
	began, heard := time.Now(), false
	c := agent.Conversation{Messages: []agent.Message{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("Answer with the word yes.")}}}}
	for delta, err := range l.model.Reply(ctx, c) {
		if err != nil {
			l.Problem = cmp.Or(context.Cause(ctx), err).Error()
		}
		heard = heard || delta.Message != nil
	}
	if !heard && l.Problem == "" {
		l.Problem = "it has not answered"
	}
	l.Checked, l.TookMS = true, time.Since(began).Milliseconds()
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
