package main

import (
	"bufio"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/config"
	"github.com/dowel-mcp/dowel/config/edit"
	"github.com/dowel-mcp/dowel/config/transfer"
	"github.com/spf13/cobra"
)

// importFlags say what is imported.
type importFlags struct {
	places
	from     []string
	dry, yes bool
}

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [NAME…]",
		Short: "Take over the servers of your other tools",
		Long: `Look into the configuration files of other tools, show the servers there, and add those that you do not have yet to your
dowel.json; with names, those alone. Variables stay variables. The other tools' files are left as they are. The tools are:

  ` + strings.Join(wrap(dialectNames(), 100), "\n  "),
		Example: `  dowel import --dry-run
  dowel import --from cursor,vscode --yes`,
		RunE: func(cmd *cobra.Command, names []string) error {
			a.began = true
			return a.importServers(cmd.Context(), names, f)
		},
	}
	f.places.register(cmd)
	cmd.Flags().StringSliceVar(&f.from, "from", nil, "look at these `tools` only")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show what would be written, and write nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "add them without asking")
	return cmd
}

// finding is a server of another tool.
type finding struct {
	*config.Server
	why string // it is not added; empty where it is
}

// findingLine is a finding as a program reads it.
type findingLine struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	File   string `json:"file"`
	Add    bool   `json:"add"`
	Why    string `json:"why,omitzero"`
}

func (a *app) importServers(ctx context.Context, names []string, f importFlags) error {
	for _, tool := range f.from {
		if !slices.Contains(dialectNames(), tool) {
			return usagef("--from %s: there is no such tool%s", tool, suggestion(tool, dialectNames()))
		}
	}
	o, err := f.places.config()
	if err != nil {
		return err
	}
	all, err := a.find(o, names, f.from)
	if err != nil {
		return err
	}
	added := a.showFindings(all)
	switch {
	case added == 0 && !a.json:
		fmt.Fprintln(a.stdout, "There is nothing to add.")
		return nil
	case added == 0 || !f.dry && !f.yes && !a.wants(added):
		return nil
	}
	err = a.editFile(ownFile(o), f.dry, true, func(text []byte, format edit.Format) (_ []byte, err error) {
		for _, found := range all {
			if found.why == "" && err == nil {
				text, err = addEntry(text, format, found.Server, o)
			}
		}
		return text, err
	})
	if err == nil && !f.dry {
		a.tell(ctx)
	}
	return err
}

// find returns the servers of other tools, each with the reason why it is not added.
func (a *app) find(o config.Options, names, from []string) (all []finding, err error) {
	own := config.Load(o)
	seen := map[string]bool{}
	var known []string
	for _, f := range config.Discover(o, from...) {
		for _, p := range f.Problems {
			if p.Server == "" {
				a.warn("%s", p.String())
			}
		}
		for _, s := range f.Servers {
			known = append(known, s.Name)
			if len(names) > 0 && !slices.Contains(names, s.Name) {
				continue
			}
			found := finding{Server: s}
			switch {
			case own.Server(s.Name) != nil:
				found.why = "you have one of that name: " + own.Server(s.Name).At.String()
			case seen[s.Name]:
				found.why = "another tool's of that name is taken"
			case !s.Valid():
				found.why = "its entry is wrong: " + s.Problems[0].String()
			case otherInput(own, s) != "":
				found.why = "its input " + otherInput(own, s) + " means something else in your file: give one of the two another id"
			case s.Command != "" && slices.Contains(s.Args, "up") && slices.Contains(s.Args, "--stdio"):
				found.why = "it is dowel itself"
			default:
				seen[s.Name] = true
			}
			all = append(all, found)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usagef("no tool has a server called %s%s", name, suggestion(name, known))
		}
	}
	return all, nil
}

// otherInput returns an input of a server that the user's own files declare otherwise; empty where there is none.
func otherInput(own *config.Set, s *config.Server) string {
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

// addEntry adds a server to the text of a file, with the inputs that it refers to.
func addEntry(text []byte, format edit.Format, s *config.Server, o config.Options) (_ []byte, err error) {
	for _, in := range s.Inputs() {
		path, value := transfer.Input(in)
		if text, err = edit.Set(text, format, path, value); err != nil {
			return nil, err
		}
	}
	return edit.Set(text, format, []string{"mcpServers", s.Name}, transfer.Entry(s, o.Project))
}

// showFindings shows what was found, and returns how many are to be added.
func (a *app) showFindings(all []finding) (added int) {
	for _, found := range all {
		if found.why == "" {
			added++
		}
		if a.json {
			encodeLine(a.stdout, findingLine{found.Name, found.Dialect, found.Path, found.why == "", found.why})
			continue
		}
		mark, more := a.stdout.green("+"), ""
		if found.why != "" {
			mark, more = a.stdout.dim("–"), a.stdout.dim("  "+line(found.why))
		}
		fmt.Fprintf(a.stdout, "%s %s  %s%s\n", mark, a.stdout.bold(line(found.Name)), found.At, more)
	}
	return added
}

// wants asks whether servers shall be added.
func (a *app) wants(n int) bool {
	if terminal(a.stdin) != nil {
		return a.agrees(bufio.NewReader(a.stdin), fmt.Sprintf("Add %d servers to your configuration?", n))
	}
	if !a.json {
		fmt.Fprintln(a.stdout, "Nothing was added: say --yes, or --dry-run to see what would be.")
	}
	return false
}
