package trust

import (
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
)

// trustAnnotations stores that the user trusts servers to say which of their tools are read-only.
// With revoke, it ends that trust. If one name cannot be trusted or revoked, it changes nothing.
func trustAnnotations(f *factory.Factory, where factory.Places, names []string, revoke bool) error {
	if len(names) == 0 {
		return exit.Usagef("name the servers: dowel trust --annotations SERVER")
	}
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	set := config.Load(o)
	for _, name := range names {
		if revoke {
			err = checkRevocable(set, name, store.TrustsAnnotations(name))
		} else {
			err = checkOwnServer(set, name)
		}
		if err != nil {
			return err
		}
	}
	var done []GrantLine
	for _, name := range names {
		if err := store.SetTrustAnnotations(name, !revoke); err != nil {
			return err
		}
		done = append(done, GrantLine{Name: name, Annotations: !revoke})
	}
	if f.JSON {
		return f.WriteValue(done)
	}
	for _, g := range done {
		words := "tools that it calls read-only no longer need an approval"
		if revoke {
			words = "tools that it calls read-only need an approval again"
		}
		fmt.Fprintf(f.Stdout, "%s: %s\n", term.Line(g.Name), words)
	}
	return nil
}

// checkOwnServer returns a usage error unless the server belongs to the user's own configuration.
func checkOwnServer(set *config.Set, name string) error {
	s := set.Server(name)
	switch {
	case s == nil:
		var known []string
		for _, s := range set.Servers {
			known = append(known, s.Name)
		}
		return exit.Usagef("no server of your configuration is called %s%s", name, suggest.Hint(name, slices.Compact(known)))
	case s.Scope == config.Project:
		return exit.Usagef("%s came with a project: only your own servers can be trusted for good; use --trust-annotations for one run", name)
	}
	return nil
}

// checkRevocable returns a usage error unless trusted, the trust that dowel's state has stored, is
// true. Trust in a configuration file can only be removed there.
func checkRevocable(set *config.Set, name string, trusted bool) error {
	switch s := set.Server(name); {
	case trusted:
		return nil
	case s != nil && s.Scope == config.User && s.TrustAnnotations:
		return exit.Usagef("the annotations of %s are trusted because of trustAnnotations in %s: remove it there", name, s.At)
	}
	return exit.Usagef("the annotations of %s are not trusted; see dowel trust --list", name)
}
