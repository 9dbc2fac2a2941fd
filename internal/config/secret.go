package config

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maskText replaces a secret.
const maskText = "****"

// secretName matches names of secret values, such as API_KEY, X-Auth-Token and clientSecret.
var secretName = regexp.MustCompile(`(?i)token(?:[^s]|$)|secret|passw|passphrase|credential|authorization|cookie|api[-_]?key|private[-_]?key|access[-_]?key|(?:^|[-_])(?:key|pat|pwd|pass|auth)(?:$|[-_])`)

// publicNames are environment variables with values that occur in ordinary text.
var publicNames = []string{"HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "PATH", "PWD", "SHELL", "TERM", "LANG", "TZ",
	"TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "HOSTNAME", "EDITOR"}

func isPublic(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(publicNames, name) || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "LC_")
}

var plainNumber = regexp.MustCompile(`^[0-9.]{1,6}$`)

// isMaskable reports whether a secret is distinctive enough to be replaced in texts. Values such as
// "1", "true" and port numbers are not.
func isMaskable(secret string) bool {
	return len(secret) >= 4 && !plainNumber.MatchString(secret) &&
		!slices.Contains([]string{"true", "false", "null", "none", "localhost", "127.0.0.1", "production", "development"}, strings.ToLower(secret))
}

// newMasker returns a replacer for secrets and their forms in URLs and in JSON. Longer forms come
// first, since one may contain another.
func newMasker(secrets []string) *strings.Replacer {
	var forms []string
	for _, s := range secrets {
		if !isMaskable(s) {
			continue
		}
		quoted, _ := json.Marshal(s) // a string can always be marshaled
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), string(quoted[1:len(quoted)-1]))
	}
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, maskText)
	}
	return strings.NewReplacer(pairs...)
}

// authSchemes are prefixes of Authorization headers, which are not secret.
var authSchemes = []string{"Bearer ", "Basic ", "Token ", "bearer ", "token "}

// secretsIn returns the secrets in a value, judged by its field.
func secretsIn(field, value string, args []string) []string {
	group, name, _ := strings.Cut(field, ".")
	switch {
	case (group == "env" || group == "headers") && secretName.MatchString(name), field == "oauth.clientSecret":
		for _, scheme := range authSchemes {
			value = strings.TrimPrefix(value, scheme)
		}
		return []string{value}
	case field == "url":
		return secretsOfURL(value)
	case strings.HasPrefix(field, "args["):
		return secretsOfArg(field, value, args)
	}
	return nil
}

func secretsOfURL(text string) []string {
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	var all []string
	if password, ok := u.User.Password(); ok {
		all = append(all, password)
	}
	for key, values := range u.Query() {
		if secretName.MatchString(key) {
			all = append(all, values...)
		}
	}
	slices.Sort(all)
	return all
}

// secretsOfArg recognises --token=VALUE, and the value after --token.
func secretsOfArg(field, value string, args []string) []string {
	if flag, rest, ok := strings.Cut(value, "="); ok && strings.HasPrefix(flag, "-") && secretName.MatchString(strings.TrimLeft(flag, "-")) {
		return []string{rest}
	}
	if i := argIndex(field); i > 0 && i < len(args) && strings.HasPrefix(args[i-1], "--") &&
		!strings.HasPrefix(value, "-") && !strings.Contains(args[i-1], "=") && secretName.MatchString(args[i-1][2:]) {
		return []string{value}
	}
	return nil
}
