// Package importing finds the servers of the user's other tools, and adds them to a file of dowel.
// The files of other tools stay unchanged.
package importing

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/wirename"
)

// Finding is a server of another tool.
type Finding struct {
	*config.Server
	// NewName is the name in dowel's file. Tool names can contain it unchanged.
	NewName string
	// SkipReason says why the server is not added; "" if it is.
	SkipReason string
}

// Destination is the file to which servers are added.
type Destination struct {
	Path string
	// ProjectFolder replaces variables for the project's folder in entries of the user's file. It
	// is "" for a file of the project, where such variables keep their meaning.
	ProjectFolder string
	// OfProject means that only the servers are added which tools keep for the project.
	OfProject bool
}

// UserDestination returns the user's own file: the first file of the options, or else the existing
// one of own, or else dowel.json in the configuration folder.
func UserDestination(own *config.Set, o config.Options) Destination {
	return Destination{Path: own.UserFile(o), ProjectFolder: o.Project}
}

// Check returns an error if the file has the format of another tool, so that dowel would not read
// the servers that it adds. own is the user's configuration.
func (to Destination) Check(own *config.Set) error {
	for _, file := range own.Files {
		d, err := config.LookupDialect(file.Dialect)
		if file.Path == to.Path && err == nil && !slices.Equal(d.Key, []string{"mcpServers"}) {
			return fmt.Errorf("%s has the format of %s, to which dowel adds no servers", to.Path, d.Title)
		}
	}
	return nil
}

// Found are the servers of other tools.
type Found struct {
	// Findings has the servers of the project last.
	Findings []Finding
	// Names are the names of all servers, also of servers that Findings leaves out.
	Names []string
	// Problems are the problems of whole files.
	Problems []string
}

// Find returns the servers of other tools. own is the user's configuration. If names or tools are
// given, it returns only those.
func Find(own *config.Set, o config.Options, to Destination, names, tools []string) (found Found) {
	taken := map[string]*config.Server{}
	var projects []Finding
	for _, file := range config.Discover(o, tools...) {
		for _, p := range file.Problems {
			if p.Server == "" {
				found.Problems = append(found.Problems, p.Text())
			}
		}
		ofProject := file.Scope == config.Project || file.Section != ""
		for _, s := range file.Servers {
			found.Names = append(found.Names, s.Name)
			if len(names) > 0 && !slices.Contains(names, s.Name) || to.OfProject && !ofProject {
				continue
			}
			f := Finding{Server: s, NewName: wirename.Fit(s.Name)}
			f.SkipReason = reasonToSkip(own, f, to, ofProject, taken[f.NewName])
			if f.SkipReason == "" {
				taken[f.NewName] = s
			}
			if ofProject {
				projects = append(projects, f)
			} else {
				found.Findings = append(found.Findings, f)
			}
		}
	}
	found.Findings = append(found.Findings, projects...)
	return found
}

// reasonToSkip returns the reason not to add a server, or "". taken is a server of the same name
// that will be added, or nil.
func reasonToSkip(own *config.Set, found Finding, to Destination, ofProject bool, taken *config.Server) string {
	s, mine := found.Server, own.Server(found.Name)
	if mine == nil {
		mine = own.Server(found.NewName)
	}
	switch {
	case mine != nil && mine.Path == s.Path:
		return "dowel reads this file itself"
	case mine != nil && hasSameEntry(mine, s, to.ProjectFolder):
		return "you already have the same server: " + mine.At.String()
	case mine != nil:
		return "you have a different server of this name: " + mine.At.String()
	case !s.Valid():
		return describeFault(s)
	case s.Command != "" && slices.Contains(s.Args, "up") && slices.Contains(s.Args, "--stdio"):
		return "it is dowel itself"
	case ofProject && !to.OfProject:
		return "it belongs to this project: dowel import --of-project adds it to the project"
	case taken != nil && hasSameEntry(taken, s, to.ProjectFolder):
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

// WithTrustedAnnotations returns the servers with entries that trust them to say which of their
// tools are read-only.
func WithTrustedAnnotations(added []Finding) []Finding {
	added = slices.Clone(added)
	for i, found := range added {
		trusted := *found.Server
		trusted.TrustAnnotations = true
		added[i].Server = &trusted
	}
	return added
}

// Add adds servers to the text of a file, together with the inputs that they use.
func Add(text []byte, format edit.Format, added []Finding, to Destination) (_ []byte, err error) {
	for _, found := range added {
		for _, in := range found.Inputs() {
			path, value := transfer.Input(in)
			if text, err = edit.Set(text, format, path, value); err != nil {
				return nil, err
			}
		}
		entry := transfer.Entry(found.Server, to.ProjectFolder)
		if found.NewName != found.Name {
			entry = append(edit.Object{{Key: "title", Value: found.Name}}, entry...)
		}
		if text, err = edit.Set(text, format, []string{"mcpServers", found.NewName}, entry); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Write adds servers to the file of a destination, and keeps a copy of the old file. If it fails,
// the file is unchanged.
func Write(added []Finding, to Destination) error {
	format, ok := edit.FormatOf(to.Path)
	if !ok {
		return fmt.Errorf("%s: want a JSON, YAML or TOML file", to.Path)
	}
	_, err := atomicfile.Update(to.Path, func(old []byte, _ bool) ([]byte, error) { return Add(old, format, added, to) },
		atomicfile.Options{Perm: 0o600, Backup: true})
	if err != nil {
		return fmt.Errorf("%s is unchanged: %w", to.Path, err)
	}
	return nil
}
