// Package importcmd is dowel import: it copies servers from the configuration of other tools into
// the user's own.
package importcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// Options say what is imported.
type Options struct {
	factory.Places
	from      []string
	ofProject bool
	dryRun, yes  bool
}

func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:   "import [NAME…]",
		Short: "Take over the servers of your other tools",
		Long: `Look into the configuration files of other tools, show the servers there with what each would run or reach, and add those
that you do not have yet to your dowel.json; with names, those alone. Variables stay variables, but the folder of a project is
written out. The other tools' files are left as they are.

Your own files are looked at. What tools keep for the current project (its .vscode/mcp.json or .cursor/mcp.json, what Claude
Code has under the project's path) may be somebody else's: it is listed, and added with --of-project alone, to the dowel.json
of the project. There it waits for your trust, as all that comes with a project: dowel trust.

Nobody answers VS Code's inputs later: those without a default have to become environment variables. The tools are:

  ` + strings.Join(term.Wrap(editing.ToolNames(), 100), "\n  "),
		Example: `  dowel import --dry-run
  dowel import --from cursor,vscode --yes
  dowel import --of-project --dry-run`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			return runImport(cmd.Context(), f, names, opts)
		},
	}
	opts.Places.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&opts.from, "from", nil, "look at these `tools` only")
	cmd.Flags().BoolVar(&opts.ofProject, "of-project", false, "add what tools keep for the project, to the project's dowel.json")
	cmd.Flags().BoolVar(&opts.dryRun, "dry-run", false, "show what would be written without its secrets, and write nothing")
	cmd.Flags().BoolVar(&opts.yes, "yes", false, "add them without asking")
	return cmd
}

// finding is a server of another tool.
type finding struct {
	*config.Server
	skipReason string // it is not added; empty where it is
}

// findingLine is a finding as a program reads it.
type findingLine struct {
	Server string   `json:"server"`
	Tool   string   `json:"tool"`
	File   string   `json:"file"`
	Add    bool     `json:"add"`
	Why    string   `json:"why,omitzero"`
	Facts  []string `json:"facts"`
}

func runImport(ctx context.Context, f *factory.Factory, names []string, opts Options) error {
	for _, tool := range opts.from {
		if !slices.Contains(editing.ToolNames(), tool) {
			return exit.Usagef("--from %s: there is no such tool%s", tool, suggest.Hint(tool, editing.ToolNames()))
		}
	}
	o, err := opts.Places.ConfigOptions()
	if err != nil {
		return err
	}
	goal, err := chooseDestination(o, opts.ofProject)
	if err != nil {
		return err
	}
	all, err := findServers(f, o, goal, names, opts.from)
	if err != nil {
		return err
	}
	showFindings(f, all)
	added := slices.DeleteFunc(all, func(found finding) bool { return found.skipReason != "" })
	warnOfSecrets(f, added, goal)
	switch {
	case len(added) == 0 && !f.JSON:
		fmt.Fprintln(f.Stdout, "There is nothing to add.")
		return nil
	case len(added) == 0:
		return nil
	case opts.dryRun:
		return showImport(f, goal, added, o)
	}
	if agreed, err := confirmImport(ctx, f, goal, len(added), opts.yes); err != nil || !agreed {
		return err
	}
	err = editing.EditFile(f, goal.path, false, true, func(text []byte, format edit.Format) ([]byte, error) {
		return addEntries(text, format, added, goal)
	})
	if err != nil {
		return err
	}
	showNeeds(f, added, o, goal)
	editing.ReloadDaemon(ctx, f)
	return nil
}

// destination is the file that servers are added to.
type destination struct {
	path string
	// projectFolder is that of the project, for the user's file, in which nothing else says where it is; empty for a file of the project.
	projectFolder    string
	ofProject bool
}

// chooseDestination returns where the user's own servers go, or those of the project.
func chooseDestination(o config.Options, ofProject bool) (destination, error) {
	if !ofProject {
		return destination{path: editing.UserFile(o), projectFolder: o.Project}, nil
	}
	if len(o.Files) > 0 {
		return destination{}, exit.Usagef("--of-project is about the files of the project, and --config about one of yours: leave one of them out")
	}
	path := filepath.Join(o.Project, "dowel.json")
	for _, file := range config.Load(o).Files {
		switch {
		case file.Path == path && file.Scope == config.User:
			return destination{}, exit.Usagef("%s is your own file: --of-project is for the folder of a project", path)
		case file.Dialect == config.Own && file.Scope == config.Project && !file.Missing:
			return destination{path: file.Path, ofProject: true}, nil
		}
	}
	return destination{path: path, ofProject: true}, nil
}

// findServers returns the servers of other tools, each with the reason why it is not added; those of the project come last.
func findServers(a *factory.Factory, o config.Options, to destination, names, from []string) (all []finding, err error) {
	own := config.Load(o)
	taken := map[string]*config.Server{}
	var known []string
	var theirs []finding
	for _, f := range config.Discover(o, from...) {
		for _, p := range f.Problems {
			if p.Server == "" {
				a.Warn("%s", p.Text())
			}
		}
		ofProject := f.Scope == config.Project || f.Section != ""
		for _, s := range f.Servers {
			known = append(known, s.Name)
			if len(names) > 0 && !slices.Contains(names, s.Name) || to.ofProject && !ofProject {
				continue
			}
			found := finding{Server: s, skipReason: reasonToSkip(own, s, to, ofProject, taken[s.Name])}
			if found.skipReason == "" {
				taken[s.Name] = s
			}
			if ofProject {
				theirs = append(theirs, found)
			} else {
				all = append(all, found)
			}
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exit.Usagef("no tool has a server called %s%s", name, suggest.Hint(name, known))
		}
	}
	return append(all, theirs...), nil
}

// reasonToSkip says why a server is not added; empty where it is. taken is the one of that name that is.
func reasonToSkip(own *config.Set, s *config.Server, to destination, ofProject bool, taken *config.Server) string {
	mine := own.Server(s.Name)
	switch {
	case mine != nil && mine.Path == s.Path:
		return "dowel reads this file itself"
	case mine != nil && hasSameEntry(mine, s, to.projectFolder):
		return "you have the same: " + mine.At.String()
	case mine != nil:
		return "you have another one of that name: " + mine.At.String()
	case !s.Valid():
		return "its entry is wrong: " + s.Problems[0].Text()
	case s.Command != "" && slices.Contains(s.Args, "up") && slices.Contains(s.Args, "--stdio"):
		return "it is dowel itself"
	case ofProject && !to.ofProject:
		return "it is of this project, not yours: dowel import --of-project adds it to the project"
	case taken != nil && hasSameEntry(taken, s, to.projectFolder):
		return "it is the same as that of " + taken.At.String()
	case taken != nil:
		return fmt.Sprintf("it differs from that of %s, which is taken: choose with --from", taken.At)
	case conflictingInput(own, s) != "":
		return "its input " + conflictingInput(own, s) + " means something else in your file: give one of the two another id"
	}
	return ""
}

// hasSameEntry reports whether two servers make the same entry.
func hasSameEntry(a, b *config.Server, folder string) bool {
	return reflect.DeepEqual(transfer.Entry(a, folder), transfer.Entry(b, folder))
}

// conflictingInput returns an input of a server that the user's own files declare otherwise; empty where there is none.
func conflictingInput(own *config.Set, s *config.Server) string {
	for _, in := range s.Inputs() {
		for _, mine := range own.Inputs {
			in.At, in.Description = mine.At, mine.Description
			if mine.ID == in.ID && !reflect.DeepEqual(mine, in) {
				return in.ID
			}
		}
	}
	return ""
}

// addEntries adds servers to the text of a file.
func addEntries(text []byte, format edit.Format, added []finding, to destination) (_ []byte, err error) {
	for _, found := range added {
		if text, err = addEntry(text, format, found.Server, to.projectFolder); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// addEntry adds a server to the text of a file, with the inputs that it refers to.
func addEntry(text []byte, format edit.Format, s *config.Server, folder string) (_ []byte, err error) {
	for _, in := range s.Inputs() {
		path, value := transfer.Input(in)
		if text, err = edit.Set(text, format, path, value); err != nil {
			return nil, err
		}
	}
	return edit.Set(text, format, []string{"mcpServers", s.Name}, transfer.Entry(s, folder))
}

// showFindings shows what was found: of what is to be added all that it would run or reach.
func showFindings(f *factory.Factory, all []finding) {
	for _, found := range all {
		facts := found.Masked().TrustFacts()
		if f.JSON {
			factory.WriteJSONLine(f.Stdout, findingLine{found.Name, found.Dialect, found.Path, found.skipReason == "", found.skipReason, facts})
			continue
		}
		if found.skipReason != "" {
			fmt.Fprintf(f.Stdout, "%s %s  %s%s\n", f.Stdout.Dim("–"), f.Stdout.Bold(term.Line(found.Name)), found.At, f.Stdout.Dim("  "+term.Line(found.skipReason)))
			continue
		}
		fmt.Fprintf(f.Stdout, "%s %s  %s\n", f.Stdout.Green("+"), f.Stdout.Bold(term.Line(found.Name)), found.At)
		for _, fact := range facts {
			fmt.Fprintln(f.Stdout, "    "+term.Line(fact))
		}
	}
}

// showImport shows what would be written, without secrets.
func showImport(f *factory.Factory, to destination, added []finding, o config.Options) error {
	format, ok := edit.FormatOf(to.path)
	if !ok {
		return exit.Usagef("%s is neither JSON nor YAML nor TOML", to.path)
	}
	before, err := os.ReadFile(to.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	masked := slices.Clone(added)
	for i, found := range masked {
		masked[i].Server = found.Masked()
	}
	after, err := addEntries(before, format, masked, to)
	if err != nil {
		return fmt.Errorf("%s: %w", to.path, err)
	}
	mask := newMask(config.Load(o), added)
	return editing.ShowChange(f, to.path, mask(string(before)), mask(string(after)))
}

// newMask returns what hides the secrets of a configuration, and of servers that are to be added, in the text of a file.
func newMask(own *config.Set, added []finding) func(string) string {
	servers := slices.Clone(own.Servers)
	for _, found := range added {
		servers = append(servers, found.Server)
	}
	secrets := []string{own.Gateway.Token}
	for _, s := range servers {
		for _, in := range s.Inputs() {
			if in.Password {
				secrets = append(secrets, in.Default)
			}
		}
	}
	return func(text string) string {
		for _, s := range servers {
			text = s.Mask(text)
		}
		for _, secret := range secrets {
			if len(secret) >= 4 && !strings.HasPrefix(secret, "${") {
				text = strings.ReplaceAll(text, secret, "****")
			}
		}
		return text
	}
}

// confirmImport asks whether servers shall be added.
func confirmImport(ctx context.Context, f *factory.Factory, to destination, n int, yes bool) (bool, error) {
	switch {
	case yes:
		return true, nil
	case term.Terminal(f.Stdin) == nil:
		return false, exit.Usagef("nothing was added, since nobody can be asked here: --yes adds what is shown, --dry-run shows what would be written")
	}
	return consent.Ask(ctx, f, term.NewLines(f.Stdin), fmt.Sprintf("Add %s to %s?", display.Plural(n, "server"), to.path))
}

// warnOfSecrets says what should not stand in a file of a project.
func warnOfSecrets(f *factory.Factory, added []finding, to destination) {
	for _, found := range added {
		if to.ofProject && !reflect.DeepEqual(found.Spec, found.Masked().Spec) {
			f.Warn("%s: there is a secret in the entry of %s, and %s may be shared: write a variable such as ${NAME} in its place", found.At, found.Name, to.path)
		}
	}
}

// showNeeds says what added servers lack before they can be started.
func showNeeds(f *factory.Factory, added []finding, o config.Options, to destination) {
	if f.JSON {
		return
	}
	set := config.Load(o)
	for _, found := range added {
		s := set.Server(found.Name)
		if s == nil {
			continue
		}
		_, problems := s.Resolve(set.Variables)
		for _, p := range problems {
			display.WriteProblem(f, p)
		}
	}
	if to.ofProject {
		fmt.Fprintln(f.Stdout, "They wait for your trust: dowel trust")
	}
}
