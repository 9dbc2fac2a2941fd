package daemon

import (
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/internal/config"
)

// GatewaySettings resolves the settings of the gateway. It fails if a user's file or a setting has
// an error: without it, the gateway could open without its token.
func GatewaySettings(set *config.Set) (config.Gateway, error) {
	settings, problems := set.Gateway.Resolve(set.Variables)
	for _, p := range set.Problems {
		if broken := slices.ContainsFunc(set.Files, func(f config.File) bool { return f.Path == p.Path && f.Broken && f.Scope == config.User }); broken {
			problems = append(problems, p)
		}
	}
	for _, p := range problems {
		if p.Severity == config.Error {
			return settings, fmt.Errorf("the gateway is not opened, since it is not clear who may use it: %w", p)
		}
	}
	return settings, nil
}

// reportProblems warns of problems of the files, but not of errors in the entry of one server: the
// state of that server shows them.
func (d *Daemon) reportProblems(set *config.Set) {
	for _, p := range set.Problems {
		if reported := d.options.Reported != nil && d.options.Reported(p); !reported && (p.Server == "" || p.Severity == config.Warning) {
			d.options.Warn("%s", p.Text())
		}
	}
	for _, shadow := range set.Shadowed {
		d.options.Notice(fmt.Sprintf("%s in %s is not started: the entry in %s has priority", shadow.Name, shadow.Path, shadow.By.Path))
	}
}
