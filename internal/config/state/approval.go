package state

import (
	"slices"
	"strings"
)

// Approval is what the user lets be called of a server without being asked.
type Approval struct {
	Server string
	// Tools are in order.
	Tools []string
}

// Approvals returns all of them, ordered by their servers.
func (s *State) Approvals() (all []Approval) {
	for name, server := range s.read().Servers {
		if len(server.AlwaysAllow) > 0 {
			all = append(all, Approval{name, slices.Clone(server.AlwaysAllow)})
		}
	}
	slices.SortFunc(all, func(a, b Approval) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// AlwaysAllow returns the tools of a server that need no approval, in order.
func (s *State) AlwaysAllow(name string) []string {
	return slices.Clone(s.read().Servers[name].AlwaysAllow)
}

// Allow lets tools of a server be called without approval.
func (s *State) Allow(name string, tools ...string) error {
	return s.change(func(now content) []change {
		return list([]string{"servers", name, "alwaysAllow"}, now.Servers[name].AlwaysAllow, tools, nil)
	})
}

// Disallow undoes Allow.
func (s *State) Disallow(name string, tools ...string) error {
	return s.change(func(now content) []change {
		return list([]string{"servers", name, "alwaysAllow"}, now.Servers[name].AlwaysAllow, nil, tools)
	})
}
