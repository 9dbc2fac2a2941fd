package daemon

import (
	"os"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// DefaultServers returns the names of the built-in servers that run for a user without a
// configuration. Servers that act on the machine are excluded.
func DefaultServers() (names []string) {
	for _, d := range builtin.Describe() {
		if !d.Local {
			names = append(names, d.Name)
		}
	}
	return names
}

// BuiltInServers returns the definitions of [DefaultServers], each a child of this process.
func BuiltInServers() (all []hub.Definition) {
	for _, name := range DefaultServers() {
		d := hub.Definition{Name: name, Origin: "built into dowel", Source: "built in", Fingerprint: "built in " + version.Number()}
		if self, err := os.Executable(); err != nil {
			d.Hold = hub.Hold{Status: hub.NeedsConfiguration, Reason: "dowel cannot find itself: " + err.Error()}
		} else {
			d.Target = stdio.Command{Path: self, Args: []string{"serve", name}}
		}
		all = append(all, d)
	}
	return all
}

// IsLocal reports whether name is a built-in server that acts on the machine, such as its files.
func IsLocal(name string) bool {
	return slices.ContainsFunc(builtin.Describe(), func(d builtin.Description) bool { return d.Name == name && d.Local })
}
