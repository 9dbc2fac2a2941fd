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
	"github.com/dowel-mcp/dowel/internal/importing"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
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
	own := config.Load(o)
	goal, err := chooseDestination(own, o, opts.ofProject)
	if err != nil {
		return err
	}
	if err := goal.Check(own); err != nil {
		return exit.UsageError{Err: err}
	}
	all, err := findServers(f, own, o, goal, names, opts.from)
	if err != nil {
		return err
	}
	added := slices.DeleteFunc(slices.Clone(all), func(found importing.Finding) bool { return found.SkipReason != "" })
	if opts.trustAnnotations {
		added = importing.WithTrustedAnnotations(added)
	}
	if opts.dryRun && !f.JSON && len(added) > 0 { // above the list, since it is long
		if err := showImport(f, own, goal, added); err != nil {
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
		return showImport(f, own, goal, added)
	case opts.dryRun:
		return nil
	}
	return addFindings(ctx, f, added, goal, o, opts)
}

// addFindings asks the user, adds the servers to the file, and shows what they need.
func addFindings(ctx context.Context, f *factory.Factory, added []importing.Finding, goal importing.Destination, o config.Options, opts Options) error {
	in := term.NewLines(f.Stdin)
	if agreed, err := confirmImport(ctx, f, in, goal, len(added), opts.yes); err != nil || !agreed {
		return err
	}
	if !opts.yes && !opts.trustAnnotations && !goal.OfProject {
		trusted, err := consent.Ask(ctx, f, in, "Let tools run without asking if their server declares them read-only?")
		if err != nil {
			return err
		}
		if trusted {
			added = importing.WithTrustedAnnotations(added)
		}
	}
	err := editing.EditFile(f, goal.Path, false, true, func(text []byte, format edit.Format) ([]byte, error) {
		return importing.Add(text, format, added, goal)
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

// chooseDestination returns the project's file if ofProject is set, otherwise the user's file.
func chooseDestination(own *config.Set, o config.Options, ofProject bool) (importing.Destination, error) {
	if !ofProject {
		return importing.UserDestination(own, o), nil
	}
	if len(o.Files) > 0 {
		return importing.Destination{}, exit.Usagef("--of-project adds to the project's file, --config to your own: use only one of them")
	}
	path := filepath.Join(o.Project, "dowel.json")
	for _, file := range own.Files {
		switch {
		case file.Path == path && file.Scope == config.User:
			return importing.Destination{}, exit.Usagef("%s is your own file: use --of-project in the folder of a project", path)
		case file.Dialect == config.Own && file.Scope == config.Project && !file.Missing:
			return importing.Destination{Path: file.Path, OfProject: true}, nil
		}
	}
	return importing.Destination{Path: path, OfProject: true}, nil
}

// findServers returns the servers of other tools, and warns of files with problems.
func findServers(f *factory.Factory, own *config.Set, o config.Options, to importing.Destination, names, from []string) ([]importing.Finding, error) {
	found := importing.Find(own, o, to, names, from)
	for _, p := range found.Problems {
		f.Warn("%s", p)
	}
	for _, name := range names {
		if !slices.Contains(found.Names, name) {
			return nil, exit.Usagef("no tool has a server named %s%s", name, suggest.Hint(name, found.Names))
		}
	}
	return found.Findings, nil
}

// showImport shows the change to the file without secrets.
func showImport(f *factory.Factory, own *config.Set, to importing.Destination, added []importing.Finding) error {
	format, ok := edit.FormatOf(to.Path)
	if !ok {
		return exit.Usagef("%s: want a JSON, YAML or TOML file", to.Path)
	}
	before, err := os.ReadFile(to.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	masked := slices.Clone(added)
	for i, found := range masked {
		masked[i].Server = found.Masked()
	}
	after, err := importing.Add(before, format, masked, to)
	if err != nil {
		return fmt.Errorf("%s: %w", to.Path, err)
	}
	mask := newMask(own, added)
	return editing.ShowChange(f, to.Path, mask(string(before)), mask(string(after)))
}

// newMask returns a function that replaces the secrets of the configuration and of the added
// servers in the text of a file.
func newMask(own *config.Set, added []importing.Finding) func(string) string {
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
func confirmImport(ctx context.Context, f *factory.Factory, in *term.Lines, to importing.Destination, n int, yes bool) (bool, error) {
	switch {
	case yes:
		return true, nil
	case term.Terminal(f.Stdin) == nil:
		return false, exit.Usagef("nothing was added: without a terminal, use --yes to add the servers or --dry-run to see the change")
	}
	return consent.Ask(ctx, f, in, fmt.Sprintf("Add %s to %s?", display.Plural(n, "server"), to.Path))
}

// warnOfSecrets warns of secrets that would be written into a project's file.
func warnOfSecrets(f *factory.Factory, added []importing.Finding, to importing.Destination) {
	for _, found := range added {
		if to.OfProject && !reflect.DeepEqual(found.Spec, found.Masked().Spec) {
			f.Warn("%s: the entry of %s contains a secret, and %s may be shared: replace it by a variable such as ${NAME}", found.At, found.Name, to.Path)
		}
	}
}

// showNextStep tells what to do after the servers were added.
func showNextStep(f *factory.Factory, to importing.Destination, running bool) {
	switch {
	case to.OfProject:
		fmt.Fprintln(f.Stdout, "To allow them to run: dowel trust")
	case running:
		fmt.Fprintln(f.Stdout, "The running dowel starts them now: dowel status")
	default:
		fmt.Fprintln(f.Stdout, "Now: dowel up")
	}
}
