package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/urlmask"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func (a *app) modelsCommand() *cobra.Command {
	var where places
	var check bool
	cmd := &cobra.Command{
		Use:   "models [NAME…]",
		Short: "List the models that run and chat can work with, and try them out",
		Long: `List the models of your configuration, and the one that is named by DOWEL_MODEL: which of them is meant where no --model is
given (*), where it is, and whether there is a key. With --check each of them, or of those that you name, is asked for one
word: what comes of it is told, and where one fails the exit code is 1.

` + modelHelp,
		Example: `  dowel models
  dowel models --check local
  dowel models --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			a.began = true
			return a.listModels(cmd.Context(), where, names, check)
		},
	}
	where.register(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "ask each of them for one word")
	return cmd
}

// modelLine is a model as a program reads it.
type modelLine struct {
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

func (a *app) listModels(ctx context.Context, where places, names []string, check bool) error {
	o, err := where.config()
	if err != nil {
		return err
	}
	r := a.newRoster(config.Load(o))
	lines, err := r.lines(names)
	if err != nil {
		return err
	}
	if len(lines) == 0 && !a.json {
		fmt.Fprintln(a.stderr, r.unnamed(modelFlags{}))
		return nil
	}
	failed := 0
	for i := range lines {
		if l := &lines[i]; check {
			l.try(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if lines[i].Problem != "" {
			failed++
		}
	}
	if err := a.showModels(lines); err != nil || !check || failed == 0 {
		return err
	}
	return errModels(failed)
}

// errModels says that models have failed, which was shown.
type errModels int

func (n errModels) Error() string { return counted(int(n), "model") + " cannot be used" }

// lines are the models of the configuration and the one that the environment names, or those of the names.
func (r *roster) lines(names []string) (all []modelLine, err error) {
	chosen, _ := r.named("")
	known := r.set.ModelNames()
	if chosen != "" && !slices.Contains(known, chosen) && r.set.DefaultModel != chosen {
		known = append(known, chosen)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usagef("there is no model %s in your configuration%s", line(name), meant(name, known))
		}
	}
	for _, name := range known {
		if len(names) == 0 || slices.Contains(names, name) {
			l := modelLine{Name: name, Chosen: name == chosen}
			r.describe(&l)
			all = append(all, l)
		}
	}
	return all, nil
}

// describe looks at what is behind a name.
func (r *roster) describe(l *modelLine) {
	made, chosen, err := r.choose(modelFlags{model: l.Name})
	if err != nil {
		l.Problem = err.Error()
		if def := r.set.LookupModel(l.Name); def != nil {
			l.Provider, l.Model, l.URL = def.Provider, def.Model, urlmask.URL(def.URL)
		}
		return
	}
	l.model, l.Provider, l.Model, l.URL = made, chosen.Provider, chosen.Model, urlmask.URL(chosen.URL)
}

// tryLimit is how long a model may take for one word; those at home may have to be loaded first.
const tryLimit = 2 * time.Minute

// try asks the model for a word.
func (l *modelLine) try(ctx context.Context) {
	if l.model == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, fmt.Errorf("it has not answered within %s", brieflyTook(tryLimit)))
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

func (a *app) showModels(lines []modelLine) error {
	if a.json {
		if lines == nil {
			lines = []modelLine{}
		}
		return a.value(map[string]any{"models": lines})
	}
	rows := [][]string{{"", "NAME", "PROVIDER", "MODEL", "URL", "STATE"}}
	for _, l := range lines {
		rows = append(rows, l.cells())
	}
	for i, text := range a.stdout.tabulate(rows) {
		fmt.Fprintln(a.stdout, text)
		if i == 0 {
			continue
		}
		const indent = "    "
		for _, why := range wrap(strings.Fields(line(lines[i-1].Problem)), a.stdout.width()-len(indent)) {
			fmt.Fprintln(a.stdout, a.stdout.dim(indent+why))
		}
	}
	return nil
}

func (l *modelLine) cells() []string {
	mark, state := "", "ready"
	if l.Chosen {
		mark = "*"
	}
	switch {
	case l.Problem != "":
		state = "cannot be used"
	case l.Checked:
		state = "answers in " + brieflyTook(time.Duration(l.TookMS)*time.Millisecond)
	}
	return []string{mark, line(l.Name), l.Provider, line(l.Model), line(cmp.Or(l.URL, "-")), state}
}
