package config

import (
	"maps"
	"slices"
	"strings"
)

// Older versions kept an unkeyed hash of facts that left out the values of variables and the
// content of files. Their agreements stay valid.

// LegacyChanges is like [TrustFacts.Changes] for an agreement that an older version stored. It
// returns the changes of the entry since then, or nil if the agreement covers the entry. It does
// not show the values of variables.
func (s *Server) LegacyChanges(a Agreement) (changes []string) {
	now := s.legacyFacts()
	if a.Hash == hashJSON(now) {
		return nil
	}
	for _, fact := range a.Facts {
		if !slices.Contains(now, fact) {
			changes = append(changes, "- "+s.hideLegacyValues(fact))
		}
	}
	for _, fact := range now {
		switch line := s.hideLegacyValues(fact); {
		case slices.Contains(a.Facts, fact):
		case slices.Contains(changes, "- "+line): // only the hidden part differs
			changes = slices.DeleteFunc(changes, func(c string) bool { return c == "- "+line })
			changes = append(changes, "~ "+line+" has changed in the hidden part")
		default:
			changes = append(changes, "+ "+line)
		}
	}
	if changes == nil { // the facts are equal, but the hash is not: the state was edited by hand
		changes = []string{"~ the stored hash differs"}
	}
	return changes
}

// hideLegacyValues removes the value of a variable and the secrets of the entry from a fact.
func (s *Server) hideLegacyValues(fact string) string {
	return s.Mask(cutLegacyValue(fact))
}

// cutLegacyValue removes the value of a variable from a fact of older versions.
func cutLegacyValue(fact string) string {
	if strings.HasPrefix(fact, "env ") {
		fact, _, _ = strings.Cut(fact, " = ")
	}
	return fact
}

// legacyFacts returns the facts in the form of older versions. The form must never change: stored
// agreements contain its hash.
func (s *Server) legacyFacts() []string {
	kind := s.Kind
	if kind == "" {
		kind = "unclear"
	}
	facts := []string{"kind " + string(kind)}
	add := func(what, text string) {
		if text != "" {
			facts = append(facts, what+" "+QuoteWord(text))
		}
	}
	add("command", s.Command)
	if len(s.Args) > 0 {
		facts = append(facts, "args "+strings.Join(QuoteWords(s.Args), " "))
	}
	add("cwd", s.Dir)
	add("envFile", s.EnvFile)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		fact := "env " + QuoteWord(name)
		if runsCode(name) && !slices.Contains(codeVariables, strings.ToUpper(name)) {
			facts = append(facts, fact+" = "+QuoteWord(s.Env[name]))
		} else {
			facts = append(facts, fact+s.describeOrigin(s.Env[name]))
		}
	}
	for _, name := range slices.Sorted(slices.Values(s.PassEnv)) {
		facts = append(facts, "env "+QuoteWord(name)+" handed on")
	}
	add("url", s.URL)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		facts = append(facts, "header "+QuoteWord(name)+s.describeOrigin(s.Headers[name]))
	}
	add("headersHelper", s.HeadersHelper)
	if o := s.OAuth; o != nil {
		add("login metadata", o.MetadataURL)
		add("login authorization", o.AuthorizationURL)
		add("login token", o.TokenURL)
	}
	return facts
}
