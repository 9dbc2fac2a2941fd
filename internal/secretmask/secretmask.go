// Package secretmask hides secrets in texts that are shown, logged or stored. All of dowel uses it:
//
//	secretmask.Text(err.Error())         // finds secrets by their form, in any text
//	secretmask.Args(command.Args)        // the arguments of a process: --token X, KEY=value
//	secretmask.URL(baseURL)              // the user and all query values of a URL
//	secretmask.NewSet(secrets).Text(s)   // replaces secrets that are known
//
// By form, it finds the user's part of URLs, values with names that look secret in query
// parameters, pairs and flags, Authorization and similar header fields, and well-known kinds of
// tokens.
package secretmask

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Mask replaces a secret.
const Mask = "****"

// nameParts are parts of names of secrets. nameWords are words of such names.
var (
	nameParts = []string{"secret", "passw", "passphrase", "credential", "authorization", "cookie", "signature", "apikey", "api_key", "api-key",
		"privatekey", "private_key", "private-key", "accesskey", "access_key", "access-key"}
	nameWords = []string{"key", "pat", "pwd", "pass", "auth", "sig", "jwt"}
)

// IsSecretName reports whether a variable, a header field, a parameter or a flag with this name
// usually holds a secret, such as API_KEY, X-Auth-Token and clientSecret.
func IsSecretName(name string) bool {
	lower := strings.ToLower(name)
	for _, part := range nameParts {
		if strings.Contains(lower, part) {
			return true
		}
	}
	for rest := lower; ; {
		_, after, found := strings.Cut(rest, "token")
		if !found {
			break
		}
		if !strings.HasPrefix(after, "s") { // MAX_TOKENS is a number
			return true
		}
		rest = after
	}
	words := strings.FieldsFunc(lower, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(nameWords, word) }) {
		return true
	}
	if n := len(words); n > 0 && slices.Contains(words, "session") && (words[n-1] == "id" || words[n-1] == "session") || lower == "sessionid" {
		return true
	}
	return len(name) > 3 && strings.HasSuffix(name, "Key")
}

// isPlaceholder reports whether a value stands for another one, is hidden already, or is not
// secret.
func isPlaceholder(value string) bool {
	switch strings.ToLower(value) {
	case "", "none", "null", "true", "false", "…", "...":
		return true
	}
	return strings.HasPrefix(value, "$") || strings.HasPrefix(value, "<") || strings.Trim(value, "*") == ""
}

// isExample reports whether a value in a sentence or a help text is an example, such as
// token=VALUE.
func isExample(value string) bool {
	switch strings.ToLower(strings.TrimRight(value, ".,:;)]}…")) {
	case "value", "string", "key", "token", "secret", "password", "number", "text", "x":
		return true
	}
	return isPlaceholder(value)
}

// Args returns the arguments of a process with their secrets masked: in each argument, the whole
// value of --token=VALUE and KEY=VALUE, and the argument that follows a flag such as --token.
func Args(args []string) []string {
	masked := make([]string, len(args))
	for i := range args {
		masked[i], _ = maskArg(args, i)
	}
	return masked
}

// SecretsOfArgs returns the secrets that [Args] masks.
func SecretsOfArgs(args []string) (all []string) {
	for i := range args {
		_, secrets := maskArg(args, i)
		all = append(all, decodeAll(secrets)...)
	}
	return all
}

// maskArg masks an argument, and returns the secrets in it.
func maskArg(args []string, i int) (masked string, secrets []string) {
	arg := args[i]
	if i > 0 && isSecretFlag(args[i-1]) && !strings.HasPrefix(arg, "-") && !isPlaceholder(arg) {
		return Mask, []string{arg}
	}
	if name, value, ok := strings.Cut(arg, "="); ok && isName(strings.TrimLeft(name, "-")) && IsSecretName(name) && !isPlaceholder(value) {
		return name + "=" + Mask, []string{value}
	}
	return mask(arg, true)
}

// isName reports whether a text can be the name of a flag or a variable.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' && r != '.'
	})
}

// isSecretFlag reports whether an argument is a flag without a value, and the next argument a
// secret.
func isSecretFlag(arg string) bool {
	name := strings.TrimLeft(arg, "-")
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && IsSecretName(name)
}

// Text returns a text of people or programs, such as an error, a log line or JSON, without the
// secrets that can be told by their form. JSON stays valid.
func Text(text string) string {
	masked, _ := mask(text, false)
	return masked
}

// Secrets returns the secrets in a value of a configuration, such as a URL, an argument or a
// variable. Secrets in a URL are returned in their decoded form.
func Secrets(value string) []string {
	_, secrets := mask(value, true)
	return decodeAll(secrets)
}

// decodeAll decodes secrets that were found in URLs. Secrets that are not encoded stay as they are.
func decodeAll(secrets []string) (all []string) {
	for _, secret := range secrets {
		decoded, err := url.QueryUnescape(secret)
		if err != nil || url.QueryEscape(decoded) != secret && url.PathEscape(decoded) != secret {
			all = append(all, secret) // its form is unusual: hide that, too
		}
		if err == nil && !slices.Contains(all, decoded) {
			all = append(all, decoded)
		}
	}
	return all
}

// Error returns an error that wraps err and has no secrets in its text, as told by [Text]. It
// returns err itself if there are none.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if text := Text(err.Error()); text != err.Error() {
		return &maskedError{text, err}
	}
	return err
}

// openFields are header fields that hold no secrets. [Header] does not search them, since it runs
// for each HTTP request to a server.
var openFields = map[string]bool{
	"Accept": true, "Cache-Control": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Date": true,
	"Mcp-Method": true, "Mcp-Protocol-Version": true, "Vary": true,
}

// Header returns a copy of header fields without credentials, which end in "…". Session ids keep
// their first six characters, and Authorization keeps its scheme. Other values are masked by
// [Text]. It may share values with header.
func Header(header map[string][]string) map[string][]string {
	if header == nil {
		return nil
	}
	masked := make(map[string][]string, len(header))
	for name, values := range header {
		if openFields[name] {
			masked[name] = values
			continue
		}
		visible := Text
		lower := strings.ToLower(name)
		switch {
		case name == "Mcp-Session-Id":
			visible = func(v string) string { return v[:min(len(v), 6)] + "…" }
		case strings.HasSuffix(name, "Authorization"):
			visible = func(v string) string {
				scheme, _, ok := strings.Cut(v, " ")
				if !ok {
					scheme = ""
				}
				return scheme + "…"
			}
		case IsSecretName(name), strings.Contains(lower, "key"), strings.Contains(lower, "token"), strings.Contains(lower, "auth"), strings.Contains(lower, "session"):
			visible = func(string) string { return "…" }
		}
		for _, v := range values {
			masked[name] = append(masked[name], visible(v))
		}
	}
	return masked
}
