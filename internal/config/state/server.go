package state

import "slices"

// Enabled returns whether the user has switched a server on or off. set is whether they have done either.
func (s *State) Enabled(name string) (on, set bool) {
	if on := s.read().Servers[name].Enabled; on != nil {
		return *on, true
	}
	return false, false
}

// SetEnabled switches a server on or off, whatever its configuration says.
func (s *State) SetEnabled(name string, on bool) error {
	return s.change(func(content) []change { return []change{{[]string{"servers", name, "enabled"}, on}} })
}

// Forget forgets a server's switch and the tools that it may always call, as when it is removed.
func (s *State) Forget(name string) error {
	return s.change(func(content) []change { return []change{{[]string{"servers", name}, nil}} })
}

// list returns the change, if there is one, of a list that is a sorted set.
func list(path []string, old, more, less []string) []change {
	entries := slices.DeleteFunc(slices.Concat(old, more), func(e string) bool { return slices.Contains(less, e) })
	slices.Sort(entries)
	entries = slices.Compact(entries)
	switch {
	case slices.Equal(entries, old):
		return nil
	case len(entries) == 0:
		return []change{{path, nil}}
	}
	return []change{{path, entries}}
}

// Favourites returns the pinned tools, by their qualified names, in order.
func (s *State) Favourites() []string { return slices.Clone(s.read().Favourites) }

// Pin adds favourites.
func (s *State) Pin(tools ...string) error {
	return s.change(func(now content) []change { return list([]string{"favourites"}, now.Favourites, tools, nil) })
}

// Unpin removes favourites.
func (s *State) Unpin(tools ...string) error {
	return s.change(func(now content) []change { return list([]string{"favourites"}, now.Favourites, nil, tools) })
}
