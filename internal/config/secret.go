package config

import (
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// publicNames are environment variables with values that occur in ordinary text.
var publicNames = []string{"HOME", "USER", "LOGNAME", "USERNAME", "USERPROFILE", "PATH", "PWD", "SHELL", "TERM", "LANG", "TZ",
	"TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "HOSTNAME", "EDITOR"}

// isPublic reports whether a variable's value is not secret.
func isPublic(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(publicNames, name) || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "LC_")
}

// authSchemes are prefixes of Authorization headers, which are not secret.
var authSchemes = []string{"Bearer ", "Basic ", "Token ", "bearer ", "token "}

// IsKeyText reports whether a value of privateKey is a key, by mistake, and not the path of a file:
// a text of several lines, with the marks of PEM, or base64 without a name that a file would have.
func IsKeyText(value string) bool {
	return strings.Contains(value, "-----BEGIN") || strings.ContainsAny(value, "\r\n") || bareKey().MatchString(value)
}

// bareKey matches the base64 of a key. The shortest, of Ed25519, has 64 characters.
var bareKey = lazyregexp.New(`^[A-Za-z0-9+][A-Za-z0-9+/]{59,}={0,2}$`)

// secretsIn returns the secrets in a value, judged by its field and its form.
func secretsIn(field, value string, args []string) []string {
	group, name, _ := strings.Cut(field, ".")
	if (group == "env" || group == "headers") && secretmask.IsSecretName(name) || field == "oauth.clientSecret" || field == "oauth.idpClientSecret" {
		for _, scheme := range authSchemes {
			value = strings.TrimPrefix(value, scheme)
		}
		return []string{value}
	}
	if field == "oauth.privateKey" && IsKeyText(value) {
		return []string{value}
	}
	if i := argIndex(field); i > 0 && i < len(args) { // the value after --token
		return secretmask.SecretsOfArgs([]string{args[i-1], value})
	}
	return secretmask.Secrets(value)
}
