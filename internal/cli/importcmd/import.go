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
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/spf13/cobra"
)

// Options are the flags of dowel import.
type Options struct {
	factory.Places
	from        []string
	ofProject   bool
	details     bool
	dryRun, yes bool
	// trustAnnotations trusts the added servers to say which of their tools are read-only.
	trustAnnotations bool
}

// NewCommand returns the command dowel import.
func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:   "import [NAME…]",
		Short: "Copy the servers of your other tools",
		Long: `Find servers in the configuration files of other tools, show the command or URL of each, and add the new ones to your
dowel.json. With names, add only these servers. Variables stay variables, but the folder of a project is written out. An
entry with a variable that only its tool can replace is left out. A name that tool names cannot contain is changed, such as
"My Server" to my-server. The other tools' files stay unchanged.

Servers that tools keep for the current project (.vscode/mcp.json, .cursor/mcp.json, or Claude Code's entries for its path)
may come from someone else. They are shown, but only added with --of-project, to the project's dowel.json. There they wait
until you allow them: dowel trust.

dowel cannot ask for VS Code's inputs: replace inputs without a default by environment variables. The tools are:

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
	cmd.Flags().BoolVar(&opts.ofProject, "of-project", false, "add the servers that tools keep for the project to the project's dowel.json")
	cmd.Flags().BoolVar(&opts.details, "details", false, "show where each server is from, and everything that it runs and needs")
	cmd.Flags().BoolVar(&opts.dryRun, "dry-run", false, "show the changes without secrets, and write nothing")
	cmd.Flags().BoolVar(&opts.yes, "yes", false, "add the servers without asking")
	cmd.Flags().BoolVar(&opts.trustAnnotations, "trust-annotations", false, "trust the added servers to say which of their tools are read-only: models call these without asking")
	cmd.MarkFlagsMutuallyExclusive("trust-annotations", "of-project")
	return cmd
}

// finding is a server of another tool.
type finding struct {
	*config.Server
	newName    string // the name in the user's file, which tool names can contain unchanged
	skipReason string // why the server is not added; "" if it is
}

func runImport(ctx context.Context, f *factory.Factory, names []string, opts Options) error {
	for _, tool := range opts.from {
		if !slices.Contains(editing.ToolNames(), tool) {
			return exit.Usagef("--from %s: unknown tool%s", tool, suggest.Hint(tool, editing.ToolNames()))
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
	added := slices.DeleteFunc(slices.Clone(all), func(found finding) bool { return found.skipReason != "" })
	if opts.trustAnnotations {
		added = withTrustedAnnotations(added)
	}
	if opts.dryRun && !f.JSON && len(added) > 0 { // above the list, since it is long
		if err := showImport(f, goal, added, o); err != nil {
			return err
		}
	}
	showFindings(f, all, o, opts.details)
	if len(all) > 0 && !f.JSON {
		showSummary(f, all, opts.details)
	}
	warnOfSecrets(f, added, goal)
	switch {
	case len(all) == 0 && !f.JSON:
		showPlaces(f, o, opts.from)
		return nil
	case len(added) == 0:
		return nil
	case opts.dryRun && f.JSON:
		return showImport(f, goal, added, o)
	case opts.dryRun:
		return nil
	}
	in := term.NewLines(f.Stdin)
	if agreed, err := confirmImport(ctx, f, in, goal, len(added), opts.yes); err != nil || !agreed {
		return err
	}
	if !opts.yes && !opts.trustAnnotations && !goal.ofProject {
		trusted, err := consent.Ask(ctx, f, in, "Let tools run without asking if their server declares them read-only?")
		if err != nil {
			return err
		}
		if trusted {
			added = withTrustedAnnotations(added)
		}
	}
	err = editing.EditFile(f, goal.path, false, true, func(text []byte, format edit.Format) ([]byte, error) {
		return addEntries(text, format, added, goal)
	})
	if err != nil {
		return err
	}
	showNeeds(f, added, o)
	running := editing.ReloadDaemon(ctx, f)
	if !f.JSON {
		showNextStep(f, goal, running)
	}
	return nil
}

// destination is the file to which servers are added.
type destination struct {
	path string
	// projectFolder replaces variables for the project's folder in entries of the user's file. It
	// is "" for a file of the project, where such variables keep their meaning.
	projectFolder string
	ofProject     bool
}

// chooseDestination returns the project's file if ofProject is set, otherwise the user's file.
func chooseDestination(o config.Options, ofProject bool) (destination, error) {
	if !ofProject {
		return destination{path: editing.UserFile(o), projectFolder: o.Project}, nil
	}
	if len(o.Files) > 0 {
		return destination{}, exit.Usagef("--of-project adds to the project's file, --config to your own: use only one of them")
	}
	path := filepath.Join(o.Project, "dowel.json")
	for _, file := range config.Load(o).Files {
		switch {
		case file.Path == path && file.Scope == config.User:
			return destination{}, exit.Usagef("%s is your own file: use --of-project in the folder of a project", path)
		case file.Dialect == config.Own && file.Scope == config.Project && !file.Missing:
			return destination{path: file.Path, ofProject: true}, nil
		}
	}
	return destination{path: path, ofProject: true}, nil
}

// findServers returns the servers of other tools, the project's servers last. A server that is not
// added has the reason.
func findServers(a *factory.Factory, o config.Options, to destination, names, from []string) (all []finding, err error) {
	own := config.Load(o)
	taken := map[string]*config.Server{}
	var known []string
	var projects []finding
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
			found := finding{Server: s, newName: wirename.Fit(s.Name)}
			found.skipReason = reasonToSkip(own, found, to, ofProject, taken[found.newName])
			if found.skipReason == "" {
				taken[found.newName] = s
			}
			if ofProject {
				projects = append(projects, found)
			} else {
				all = append(all, found)
			}
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exit.Usagef("no tool has a server named %s%s", name, suggest.Hint(name, known))
		}
	}
	return append(all, projects...), nil
}

// reasonToSkip returns the reason not to add a server, or "". taken is a server of the same name
// that will be added, or nil.
func reasonToSkip(own *config.Set, found finding, to destination, ofProject bool, taken *config.Server) string {
	s, mine := found.Server, own.Server(found.Name)
	if mine == nil {
		mine = own.Server(found.newName)
	}
	switch {
	case mine != nil && mine.Path == s.Path:
		return "dowel reads this file itself"
	case mine != nil && hasSameEntry(mine, s, to.projectFolder):
		return "you already have the same server: " + mine.At.String()
	case mine != nil:
		return "you have a different server of this name: " + mine.At.String()
	case !s.Valid():
		return describeFault(s)
	case s.Command != "" && slices.Contains(s.Args, "up") && slices.Contains(s.Args, "--stdio"):
		return "it is dowel itself"
	case ofProject && !to.ofProject:
		return "it belongs to this project: dowel import --of-project adds it to the project"
	case taken != nil && hasSameEntry(taken, s, to.projectFolder):
		return "it is the same as " + taken.At.String()
	case taken != nil:
		return fmt.Sprintf("it differs from %s, which is added: choose with --from", taken.At)
	case conflictingInput(own, s) != "":
		return "your file has a different input " + conflictingInput(own, s) + ": change one of the two ids"
	}
	return ""
}

// describeFault describes the first error of a server's entry, with its line.
func describeFault(s *config.Server) string {
	i := slices.IndexFunc(s.Problems, func(p config.Problem) bool { return p.Severity == config.Error })
	return fmt.Sprintf("line %d: %s", s.Problems[i].Line, s.Problems[i].Message)
}

// hasSameEntry reports whether two servers have the same entry in a file.
func hasSameEntry(a, b *config.Server, folder string) bool {
	return reflect.DeepEqual(transfer.Entry(a, folder), transfer.Entry(b, folder))
}

// conflictingInput returns the id of a server's input that the user's files declare differently, or
// "".
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
		if text, err = addEntry(text, format, found, to.projectFolder); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// addEntry adds a server to the text of a file, together with the inputs that it uses.
func addEntry(text []byte, format edit.Format, found finding, folder string) (_ []byte, err error) {
	for _, in := range found.Inputs() {
		path, value := transfer.Input(in)
		if text, err = edit.Set(text, format, path, value); err != nil {
			return nil, err
		}
	}
	entry := transfer.Entry(found.Server, folder)
	if found.newName != found.Name {
		entry = append(edit.Object{{Key: "title", Value: found.Name}}, entry...)
	}
	return edit.Set(text, format, []string{"mcpServers", found.newName}, entry)
}

// showImport shows the change to the file without secrets.
func showImport(f *factory.Factory, to destination, added []finding, o config.Options) error {
	format, ok := edit.FormatOf(to.path)
	if !ok {
		return exit.Usagef("%s: want a JSON, YAML or TOML file", to.path)
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

// newMask returns a function that replaces the secrets of the configuration and of the added
// servers in the text of a file.
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

// confirmImport asks the user whether to add n servers. It returns true without asking if yes is
// set, and fails without a terminal.
func confirmImport(ctx context.Context, f *factory.Factory, in *term.Lines, to destination, n int, yes bool) (bool, error) {
	switch {
	case yes:
		return true, nil
	case term.Terminal(f.Stdin) == nil:
		return false, exit.Usagef("nothing was added: without a terminal, use --yes to add the servers or --dry-run to see the change")
	}
	return consent.Ask(ctx, f, in, fmt.Sprintf("Add %s to %s?", display.Plural(n, "server"), to.path))
}

// withTrustedAnnotations returns the servers with entries that believe their annotations.
func withTrustedAnnotations(added []finding) []finding {
	added = slices.Clone(added)
	for i, found := range added {
		trusted := *found.Server
		trusted.TrustAnnotations = true
		added[i].Server = &trusted
	}
	return added
}

// warnOfSecrets warns of secrets that would be written into a project's file.
func warnOfSecrets(f *factory.Factory, added []finding, to destination) {
	for _, found := range added {
		if to.ofProject && !reflect.DeepEqual(found.Spec, found.Masked().Spec) {
			f.Warn("%s: the entry of %s contains a secret, and %s may be shared: replace it by a variable such as ${NAME}", found.At, found.Name, to.path)
		}
	}
}

// showNextStep tells what to do after the servers were added.
func showNextStep(f *factory.Factory, to destination, running bool) {
	switch {
	case to.ofProject:
		fmt.Fprintln(f.Stdout, "To allow them to run: dowel trust")
	case running:
		fmt.Fprintln(f.Stdout, "The running dowel starts them now: dowel status")
	default:
		fmt.Fprintln(f.Stdout, "Now: dowel up")
	}
}
