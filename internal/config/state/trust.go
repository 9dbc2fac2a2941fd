package state

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"
)

// Trusted returns what the user has trusted of a server that a file defines: a hash of what counts, and that in words, so that
// a change can be shown. Files are known by their absolute path; one that moves has to be trusted again.
func (s *State) Trusted(file, name string) (hash string, facts []string, ok bool) {
	t, ok := s.read().Trust[absolute(file)][name]
	return t.Hash, slices.Clone(t.Facts), ok && t.Hash != ""
}

// Trust notes that the user trusts a server of a file, in place of what they have trusted of it before.
func (s *State) Trust(file, name, hash string, facts []string) error {
	if facts == nil {
		facts = []string{}
	}
	value := map[string]any{"hash": hash, "facts": facts}
	return s.change(func(content) []change { return []change{{[]string{"trust", absolute(file), name}, value}} })
}

// Grant is what the user trusts of a file.
type Grant struct {
	File, Name string
	// Facts say what was agreed to, in lines.
	Facts []string
}

// Grants returns all that the user trusts, ordered by file and name.
func (s *State) Grants() (all []Grant) {
	for file, servers := range s.read().Trust {
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
	file = absolute(file)
	return s.change(func(now content) []change {
		if _, ok := now.Trust[file][name]; ok && len(now.Trust[file]) == 1 {
			return []change{{[]string{"trust", file}, nil}}
		}
		return []change{{[]string{"trust", file, name}, nil}}
	})
}

func absolute(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return filepath.Clean(file)
}

// tokenBytes is how much chance a token holds.
const tokenBytes = 32

// Token returns the bearer token that the gateway asks for: 32 random bytes as base64url. The first call makes it; of several
// processes that do so at a time, all get the same.
func (s *State) Token() (string, error) {
	if token := s.read().Gateway.Token; token != "" {
		return token, nil
	}
	var token string
	err := s.change(func(now content) []change {
		if token = now.Gateway.Token; token != "" {
			return nil
		}
		raw := make([]byte, tokenBytes)
		rand.Read(raw) // never fails
		token = base64.RawURLEncoding.EncodeToString(raw)
		return []change{{[]string{"gateway", "token"}, token}}
	})
	if err != nil {
		return "", err
	}
	return token, nil
}
