package secretmask

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Set is a set of known secrets. Its zero value is empty. It is safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	secrets  []string
	replacer *strings.Replacer // of secrets; nil if secrets have been added since
	forms    [][]byte          // of secrets, as replacer has them
}

// NewSet returns a set of secrets; see [Set.Add].
func NewSet(secrets ...string) *Set {
	s := &Set{}
	s.Add(secrets...)
	return s
}

// Add adds secrets. Values that are too short or too common to be recognised, such as "1" and
// "true", are not added.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range secrets {
		if isDistinctive(secret) && !slices.Contains(s.secrets, secret) {
			s.secrets, s.replacer = append(s.secrets, secret), nil
		}
	}
}

// Text returns a text without the secrets of the set, also in their forms in URLs and in JSON, and
// without the secrets that [Text] finds.
func (s *Set) Text(text string) string { return Text(s.Known(text)) }

// Known returns a text without the secrets of the set.
func (s *Set) Known(text string) string {
	s.mu.Lock()
	s.prepare()
	r := s.replacer
	s.mu.Unlock()
	return r.Replace(text)
}

// Secrets returns the secrets of the set.
func (s *Set) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.secrets)
}

// Forms returns the secrets in all the forms that [Set.Known] replaces, longer ones first. The
// caller must not change them.
func (s *Set) Forms() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepare()
	return s.forms
}

// MayContain reports whether [Set.Text] may change a text. It takes a small part of the time of
// Text.
func (s *Set) MayContain(text []byte) bool {
	for _, form := range s.Forms() {
		if bytes.Contains(text, form) {
			return true
		}
	}
	return MayContain(text)
}

// prepare makes the replacer and the forms if secrets have been added. s.mu is held.
func (s *Set) prepare() {
	if s.replacer != nil {
		return
	}
	var pairs []string
	s.forms = nil
	for _, form := range formsOf(s.secrets) {
		pairs = append(pairs, form, Mask)
		s.forms = append(s.forms, []byte(form))
	}
	s.replacer = strings.NewReplacer(pairs...)
}

var plainNumber = lazyregexp.New(`^[0-9.]{1,6}$`)

// isDistinctive reports whether a secret can be replaced in texts without hiding other words.
func isDistinctive(secret string) bool {
	return len(secret) >= shortest && !plainNumber().MatchString(secret) &&
		!slices.Contains([]string{"true", "false", "null", "none", "localhost", "127.0.0.1", "production", "development", Mask}, strings.ToLower(secret))
}

// formsOf returns secrets in all their forms. Longer forms come first, since one may contain
// another.
func formsOf(secrets []string) []string {
	var forms []string
	for _, s := range secrets {
		quoted, _ := json.Marshal(s) // a string can always be marshaled
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), string(quoted[1:len(quoted)-1]))
	}
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(forms)
}
