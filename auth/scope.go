package auth

import (
	"encoding/json"
	"slices"
	"strings"
)

// splitScopes returns the scopes of a parameter. Some servers separate them with commas.
func splitScopes(scope string) []string {
	return strings.FieldsFunc(scope, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
}

// readScopes returns the scopes of an answer, or nil. Most servers write a string, some a list.
func readScopes(raw json.RawMessage) []string {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return splitScopes(text)
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil
	}
	return list
}

func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }

// unionScopes returns the scopes of a, followed by the scopes that only b has.
func unionScopes(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

const scopeOffline = "offline_access"

// chooseScopes returns the scopes to ask for (authorization: scope selection strategy). A step-up
// asks for the scopes of the refused token and of the challenge. Otherwise the scopes are the
// options', else the challenge's, else all that the resource names. If a login replaces a token
// that has ended, more also has the scopes that this token was requested with.
func (t *Transport) chooseScopes(n *need, d *discovery, r *Record) (base, more []string) {
	var scopes []string
	switch {
	case n.kind == stepUp && n.failed != nil:
		scopes = unionScopes(n.failed.requested, n.challenge.scopes)
	case t.opts.Scopes != nil:
		scopes = t.opts.Scopes
	case len(n.challenge.scopes) > 0:
		scopes = n.challenge.scopes
	default:
		scopes = d.scopes
	}
	base = unionScopes(scopes, n.extraScopes)
	if n.kind == renewal {
		return base, unionScopes(base, r.Requested)
	}
	return base, base
}

// withOffline adds offline_access if the authorization server knows it and other scopes are asked
// for: alone it would replace the scopes that the server grants by default.
func withOffline(scopes []string, d *discovery) []string {
	if len(scopes) == 0 || !slices.Contains(d.server.ScopesSupported, scopeOffline) {
		return scopes
	}
	return unionScopes(scopes, []string{scopeOffline})
}
