package published

import (
	"fmt"
	"os"
	"slices"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
)

// Leftover is a folder that dowel add made for one server, and that goes with it.
type Leftover struct {
	// What names it for people: "bundle" or "secrets".
	What, Folder string
}

// Leftovers returns the folders of a server: its bundle, and the secrets that dowel stored for it.
func Leftovers(s *config.Server) (all []Leftover) {
	if root, err := bundlesFolder(); err == nil {
		if folder := bundleOf(root, s); folder != "" {
			all = append(all, Leftover{"bundle", folder})
		}
	}
	if root, err := secretsFolder(); err == nil {
		for _, folder := range secretFoldersOf(root, s) {
			all = append(all, Leftover{"secrets", folder})
		}
	}
	return all
}

// RemoveLeftovers removes the folders of a removed entry, unless another entry may need them: they
// stay if a file cannot be read, and if the entry was in a file of --config or of a project, since
// dowel does not know all such files.
func RemoveLeftovers(f *factory.Factory, removed *config.Server, o config.Options) {
	all := Leftovers(removed)
	if len(all) == 0 {
		return
	}
	set := config.Load(o)
	isUnsure := len(o.Files) > 0 || removed.Scope != config.User || slices.ContainsFunc(set.Files, func(file config.File) bool { return file.Broken })
	for _, l := range all {
		isUsed := slices.ContainsFunc(set.Servers, func(s *config.Server) bool { return slices.Contains(Leftovers(s), l) }) ||
			slices.ContainsFunc(set.Shadowed, func(s config.Shadow) bool { return slices.Contains(Leftovers(s.Server), l) })
		if isUsed {
			continue
		}
		l.remove(f, isUnsure)
	}
}

// remove removes the folder unless another file may refer to it, and tells the user.
func (l Leftover) remove(f *factory.Factory, isUnsure bool) {
	note := fmt.Sprintf("Removed the %s: %s", l.What, l.Folder)
	if isUnsure {
		note = l.explainStay()
	} else if err := os.RemoveAll(l.Folder); err != nil {
		f.Warn("the folder of the %s was not removed: %v", l.What, err)
		return
	}
	if !f.JSON {
		f.WriteNote("%s", note)
	}
}

// explainStay says why the folder is not removed.
func (l Leftover) explainStay() string {
	if l.What == "bundle" {
		return fmt.Sprintf("The bundle stays in %s, since other files may run it.", l.Folder)
	}
	return fmt.Sprintf("The %s stay in %s, since other files may need them.", l.What, l.Folder)
}
