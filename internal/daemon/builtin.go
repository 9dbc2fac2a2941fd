package daemon

import (
	"os"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// DefaultServers are the built-in servers that are started for somebody who has not named any.
func DefaultServers() (names []string) {
	for _, d := range builtin.Describe() {
		if !d.Local {
			names = append(names, d.Name)
		}
	}
	return names
}

// BuiltInServers are the servers of a user without a configuration, each a child of this process.
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

// IsLocal reports whether a built-in server acts on the machine that it is on.
func IsLocal(name string) bool {
	return slices.ContainsFunc(builtin.Describe(), func(d builtin.Description) bool { return d.Name == name && d.Local })
}
