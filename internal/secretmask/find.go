package secretmask

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// rules find secrets by their form. They are compiled at the first use, since few programs need
// them at their start.
var rules = sync.OnceValue(func() []rule {
	return []rule{
		{"@", regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)([^\s/"'\\<>` + "`" + `]*)@`), maskUser},
		{"@", regexp.MustCompile(`(://[^\s/:@"'\\<>]+:)([^\s@"'\\<>]*)@`), maskOddPassword},
		{"", regexp.MustCompile(`(?i)((?:\b|\\[nrt])(?:(?:proxy-)?authorization|(?:set-)?cookie|x-[a-z0-9-]*(?:key|token|secret|auth)[a-z-]*|api-key|private-token))(["']?\s*[:=]\s*["']?)([^"'\\\r\n]+)`), maskField},
		{" ", regexp.MustCompile(`(?i)((?:\b|\\[nrt])(?:bearer|basic))( )([A-Za-z0-9._~+/=-]{6,})`), maskCredential},
		{"=", regexp.MustCompile(`([?&]?)([A-Za-z][A-Za-z0-9_.-]*)=(\\?["'])?([^\s&"'\\<>]+)`), maskPair},
		{"-", regexp.MustCompile(`(^|[\s"'])(--?[A-Za-z][A-Za-z0-9_-]*)(\s+|["'], ?["'])([^\s"'\\<>]+)`), maskFlag},
		{"", regexp.MustCompile(`()(\b|\\[nrt])((?:gh[a-z]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|eyJ)[A-Za-z0-9_.-]{12,})`), maskToken},
	}
})

// rule finds candidates by a pattern. hide returns the text that replaces one, and the secret in
// it, or "" if it holds no secret. groups are the groups of the pattern; strict is true for values
// of a configuration, where a name alone decides.
type rule struct {
	needs   string // every match contains it
	pattern *regexp.Regexp
	hide    func(groups []string, strict bool) (shown, secret string)
}

// mask replaces the secrets in a text, and returns them.
func mask(text string, strict bool) (masked string, secrets []string) {
	if !strings.ContainsAny(text, "@= :-_") && len(text) < 16 {
		return text, nil
	}
	for _, r := range rules() {
		if !strings.Contains(text, r.needs) {
			continue
		}
		var out strings.Builder
		last := 0
		for _, at := range r.pattern.FindAllStringSubmatchIndex(text, -1) {
			groups := make([]string, len(at)/2)
			for i := range groups {
				if at[2*i] >= 0 {
					groups[i] = text[at[2*i]:at[2*i+1]]
				}
			}
			if shown, secret := r.hide(groups, strict); secret != "" {
				out.WriteString(text[last:at[0]] + shown)
				last = at[1]
				secrets = append(secrets, secret)
			}
		}
		text = out.String() + text[last:]
	}
	return text, secrets
}

// maskUser hides the password of a URL, or the user if there is no password.
func maskUser(g []string, _ bool) (string, string) {
	name, password, ok := strings.Cut(g[2], ":")
	switch {
	case ok && !isPlaceholder(password):
		return g[1] + name + ":" + Mask + "@", password
	case !ok && !isPlaceholder(name) && !isUserName(g[1], name):
		return g[1] + Mask + "@", name
	}
	return "", ""
}

// isUserName reports whether the user of a URL is a name and no token.
func isUserName(scheme, name string) bool {
	return name == "git" || !strings.HasPrefix(strings.ToLower(scheme), "http") && len(name) < 16
}

// maskOddPassword hides a password with a slash, which makes its URL malformed.
func maskOddPassword(g []string, _ bool) (string, string) {
	port, _, isPath := strings.Cut(g[2], "/")
	if isPlaceholder(g[2]) || !isPath || strings.Trim(port, "0123456789") == "" {
		return "", ""
	}
	return g[1] + Mask + "@", g[2]
}

// maskField hides the value of a header field, except its scheme.
func maskField(g []string, strict bool) (string, string) {
	if isQuoted := strings.HasSuffix(g[2], `"`); strings.HasPrefix(g[2], `"`) && !isQuoted || isQuoted && startsAfterString(g[3]) {
		return "", "" // JSON: a value that is not a string, or a string that ends after the name
	}
	value, scheme := g[3], ""
	if first, rest, ok := strings.Cut(value, " "); ok && !strings.ContainsAny(first, "=,;") {
		scheme, value = first+" ", rest
	}
	if isPlaceholder(value) || !strict && isExample(value) || !strict && strings.Contains(strings.TrimSpace(value), " ") && !strings.Contains(value, ";") { // prose
		return "", ""
	}
	return g[1] + g[2] + scheme + Mask, value
}

// maskCredential hides the value after a scheme, unless it is a word.
func maskCredential(g []string, strict bool) (string, string) {
	if isPlaceholder(g[3]) || !strict && isWord(g[3]) {
		return "", ""
	}
	return g[1] + g[2] + Mask, g[3]
}

// maskPair hides the value of NAME=VALUE. In a query of a URL, "key" is a name of secrets, too.
func maskPair(g []string, strict bool) (string, string) {
	if g[3] == `"` && startsAfterString(g[4]) {
		return "", ""
	}
	isCommon := strings.EqualFold(g[2], "key") || strings.EqualFold(g[2], "auth")
	if !IsSecretName(g[2]) || isPlaceholder(g[4]) || !strict && (isExample(g[4]) || isCommon && g[1] == "") {
		return "", ""
	}
	return g[1] + g[2] + "=" + g[3] + Mask, g[4]
}

// maskFlag hides the value after a flag, unless it is a word of a sentence.
func maskFlag(g []string, strict bool) (string, string) {
	if !isSecretFlag(g[2]) || strings.HasPrefix(g[4], "-") || isPlaceholder(g[4]) || !strict && isWord(g[4]) {
		return "", ""
	}
	return g[1] + g[2] + g[3] + Mask, g[4]
}

// maskToken hides a well-known kind of token.
func maskToken(g []string, _ bool) (string, string) { return g[2] + Mask, g[3] }

// startsAfterString reports whether a text is what follows a string in JSON.
func startsAfterString(text string) bool {
	text = strings.TrimLeft(text, " \t")
	return text == "" || strings.ContainsAny(text[:1], ",:}]")
}

// isWord reports whether a text may be a word of a sentence: it has letters only, of one case
// except the first, and perhaps a mark at its end.
func isWord(text string) bool {
	text = strings.TrimRight(text, ".,:;!?)")
	for i, r := range text {
		if !unicode.IsLetter(r) && r != '-' || i > 0 && unicode.IsUpper(r) != unicode.IsUpper(rune(text[len(text)-1])) {
			return false
		}
	}
	return len(text) < 24
}
