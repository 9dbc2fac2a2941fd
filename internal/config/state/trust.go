package state

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Trusted returns the user's trust in a server that a file defines: the hash of its facts and the
// facts in words, so that a change can be shown. ok is false if the server is not trusted. Files
// are identified by their absolute path, so a moved file must be trusted again.
func (s *State) Trusted(file, name string) (hash string, facts []string, ok bool) {
	t, ok := s.current().Trust[absolutePath(file)][name]
	return t.Hash, slices.Clone(t.Facts), ok && t.Hash != ""
}

// Trust stores the user's trust in a server of a file. It replaces earlier trust in that server.
func (s *State) Trust(file, name, hash string, facts []string) error {
	if facts == nil {
		facts = []string{}
	}
	value := map[string]any{"hash": hash, "facts": facts}
	return s.updateFile(func(fileContent) []valueChange {
		return []valueChange{{[]string{"trust", absolutePath(file), name}, value}}
	})
}

// Grant is the user's trust in one server of a file.
type Grant struct {
	File, Name string
	// Facts are the facts that the user agreed to, one a line.
	Facts []string
}

// Grants returns all grants, sorted by file and name.
func (s *State) Grants() (all []Grant) {
	for file, servers := range s.current().Trust {
		for name, t := range servers {
			if t.Hash != "" {
				all = append(all, Grant{file, name, slices.Clone(t.Facts)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Grant) int { return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Name, b.Name)) })
	return all
}

// Distrust undoes Trust.
func (s *State) Distrust(file, name string) error {
	file = absolutePath(file)
	return s.updateFile(func(now fileContent) []valueChange {
		if _, ok := now.Trust[file][name]; ok && len(now.Trust[file]) == 1 {
			return []valueChange{{[]string{"trust", file}, nil}}
		}
		return []valueChange{{[]string{"trust", file, name}, nil}}
	})
}

func absolutePath(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return filepath.Clean(file)
}
