package state

import (
	"slices"
	"strings"
)

// Enabled returns the user's switch for a server. set is false if the user has not switched the
// server on or off.
func (s *State) Enabled(name string) (on, set bool) {
	if on := s.current().Servers[name].Enabled; on != nil {
		return *on, true
	}
	return false, false
}

// SetEnabled switches a server on or off. The switch overrides the server's configuration.
func (s *State) SetEnabled(name string, on bool) error {
	return s.updateFile(func(fileContent) []valueChange { return []valueChange{{[]string{"servers", name, "enabled"}, on}} })
}

// updateSet returns the change of a sorted list that adds and removes entries, or nil if nothing
// changes.
func updateSet(path []string, old, more, less []string) []valueChange {
	entries := slices.DeleteFunc(slices.Concat(old, more), func(e string) bool { return slices.Contains(less, e) })
	slices.Sort(entries)
	entries = slices.Compact(entries)
	switch {
	case slices.Equal(entries, old):
		return nil
	case len(entries) == 0:
		return []valueChange{{path, nil}}
	}
	return []valueChange{{path, entries}}
}

// Favourites returns the qualified names of the tools that stay visible when tools are searched
// for. The user writes them into the file by hand.
func (s *State) Favourites() []string { return slices.Clone(s.current().Favourites) }

// Approval says which tools of a server may be called without asking the user.
type Approval struct {
	Server string
	// Tools are the names of the tools, sorted.
	Tools []string
	// Annotations means that tools which the server calls read-only need no approval.
	Annotations bool
}

// Approvals returns all approvals, sorted by server.
func (s *State) Approvals() (all []Approval) {
	for name, server := range s.current().Servers {
		if len(server.AlwaysAllow) > 0 || server.TrustAnnotations {
			all = append(all, Approval{name, slices.Clone(server.AlwaysAllow), server.TrustAnnotations})
		}
	}
	slices.SortFunc(all, func(a, b Approval) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// AlwaysAllow returns the tools of a server that need no approval, sorted.
func (s *State) AlwaysAllow(name string) []string {
	return slices.Clone(s.current().Servers[name].AlwaysAllow)
}

// Allow lets tools of a server be called without approval.
func (s *State) Allow(name string, tools ...string) error {
	return s.updateFile(func(now fileContent) []valueChange {
		return updateSet([]string{"servers", name, "alwaysAllow"}, now.Servers[name].AlwaysAllow, tools, nil)
	})
}

// Disallow undoes Allow.
func (s *State) Disallow(name string, tools ...string) error {
	return s.updateFile(func(now fileContent) []valueChange {
		return updateSet([]string{"servers", name, "alwaysAllow"}, now.Servers[name].AlwaysAllow, nil, tools)
	})
}

// TrustsAnnotations reports whether the user trusts a server to say which of its tools are
// read-only.
func (s *State) TrustsAnnotations(name string) bool {
	return s.current().Servers[name].TrustAnnotations
}

// SetTrustAnnotations stores whether the user trusts a server to say which of its tools are
// read-only.
func (s *State) SetTrustAnnotations(name string, trusted bool) error {
	return s.updateFile(func(now fileContent) []valueChange {
		switch path := []string{"servers", name, "trustAnnotations"}; {
		case trusted == now.Servers[name].TrustAnnotations:
			return nil
		case trusted:
			return []valueChange{{path, true}}
		default:
			return []valueChange{{path, nil}}
		}
	})
}
