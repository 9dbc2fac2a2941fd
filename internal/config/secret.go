package config

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// masked stands in the place of a secret.
const masked = "****"

// secretName tells the names of things whose value is not for everybody: API_KEY, X-Auth-Token, clientSecret.
var secretName = regexp.MustCompile(`(?i)token(?:[^s]|$)|secret|passw|passphrase|credential|authorization|cookie|api[-_]?key|private[-_]?key|access[-_]?key|(?:^|[-_])(?:key|pat|pwd|pass|auth)(?:$|[-_])`)

// publicNames are environment variables whose value is all over every text.
var publicNames = []string{"HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "PATH", "PWD", "SHELL", "TERM", "LANG", "TZ",
	"TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "HOSTNAME", "EDITOR"}

func public(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(publicNames, name) || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "LC_")
}

var plainNumber = regexp.MustCompile(`^[0-9.]{1,6}$`)

// maskable reports whether a secret can be recognised in a text: "1", "true" and port numbers are everywhere.
func maskable(secret string) bool {
	return len(secret) >= 4 && !plainNumber.MatchString(secret) &&
		!slices.Contains([]string{"true", "false", "null", "none", "localhost", "127.0.0.1", "production", "development"}, strings.ToLower(secret))
}

// masker replaces secrets, and the forms that they have in URLs and in JSON; the longest first, since one may hold another.
func masker(secrets []string) *strings.Replacer {
	var forms []string
	for _, s := range secrets {
		if !maskable(s) {
			continue
		}
		quoted, _ := json.Marshal(s) // a string always can be
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
		pairs = append(pairs, form, masked)
	}
	return strings.NewReplacer(pairs...)
}

// schemes of Authorization headers, which are no part of the secret.
var schemes = []string{"Bearer ", "Basic ", "Token ", "bearer ", "token "}

// secretsIn are the secrets that a value holds because of where it stands.
func secretsIn(field, value string, args []string) []string {
	group, name, _ := strings.Cut(field, ".")
	switch {
	case (group == "env" || group == "headers") && secretName.MatchString(name), field == "oauth.clientSecret":
		for _, scheme := range schemes {
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

// secretsOfArg knows --token=VALUE, and --token before the value.
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
