package state

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
)

// Trusted returns the user's trust in a server that a file defines. ok is false if the server is
// not trusted. Files are identified by their absolute path, so a moved file must be trusted again.
func (s *State) Trusted(file, name string) (a config.Agreement, ok bool) {
	a, ok = s.current().Trust[absolutePath(file)][name]
	return cloneAgreement(a), ok && isAgreement(a)
}

// isAgreement reports whether an entry holds trust.
func isAgreement(a config.Agreement) bool { return a.Hash != "" || len(a.Digests) > 0 }

func cloneAgreement(a config.Agreement) config.Agreement {
	a.Facts, a.Digests = slices.Clone(a.Facts), maps.Clone(a.Digests)
	return a
}

// Trust stores the user's trust in a server of a file. It replaces earlier trust in that server.
func (s *State) Trust(file, name string, a config.Agreement) error {
	value := map[string]any{"facts": append([]string{}, a.Facts...), "digests": a.Digests}
	if a.Folder {
		value["folder"] = true
	}
	return s.updateFile(func(fileContent) []valueChange {
		return []valueChange{{[]string{"trust", absolutePath(file), name}, value}}
	})
}

// Grant is the user's trust in one server of a file.
type Grant struct {
	File, Name string
	config.Agreement
}

// Grants returns all grants, sorted by file and name.
func (s *State) Grants() (all []Grant) {
	for file, servers := range s.current().Trust {
		for name, a := range servers {
			if isAgreement(a) {
				all = append(all, Grant{file, name, cloneAgreement(a)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Grant) int { return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Name, b.Name)) })
	return all
}

// Distrust removes the user's trust in a server of a file.
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
