package doctor

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// hidden stands for a part of a URL that is left out.
const hidden = "…"

// masker hides secrets in texts. It is safe for concurrent use.
type masker struct {
	custom func(string) string // the caller's masker; may be nil
	known  secretmask.Set
}

// maskText returns s without secrets.
func (m *masker) maskText(s string) string {
	if s = m.known.Text(s); m.custom != nil {
		s = m.custom(s)
	}
	return s
}

// maskLines masks and shortens lines.
func (m *masker) maskLines(lines []string) []string {
	shown := make([]string, 0, len(lines))
	for _, line := range lines {
		shown = append(shown, shortenText(m.maskText(line), lineRunes)) // mask before shortening: half a secret is not recognised
	}
	return shown
}

// addSecret hides value from now on. Values under 6 bytes are ignored, since they occur in ordinary
// words.
func (m *masker) addSecret(value string) {
	const short = 6
	if value = strings.TrimSpace(value); len(value) >= short {
		m.known.Add(value)
	}
}

// addCommand adds the secrets among variables and arguments.
func (m *masker) addCommand(c *stdio.Command) {
	for name, value := range c.Env {
		if secretmask.IsSecretName(name) {
			m.addSecret(value)
		}
		m.known.Add(secretmask.Secrets(value)...)
	}
	for _, secret := range secretmask.SecretsOfArgs(c.Args) {
		m.addSecret(secret)
	}
	for _, arg := range c.Args {
		m.addHeaderArg(arg)
	}
}

// addHeaderArg adds the value of an argument that holds a header field, such as "Authorization:
// Bearer x".
func (m *masker) addHeaderArg(arg string) {
	if name, value, ok := strings.Cut(arg, ":"); ok && secretmask.IsSecretName(name) && !strings.ContainsAny(name, "/= ") {
		m.addCredential(value)
	}
}

// addURL adds the password and the secret parameters of a URL.
func (m *masker) addURL(u *url.URL) {
	if password, ok := u.User.Password(); ok {
		m.addSecret(password)
	} else if u.User != nil {
		m.addSecret(u.User.Username())
	}
	for name, values := range u.Query() {
		if secretmask.IsSecretName(name) {
			for _, v := range values {
				m.addSecret(v)
				m.addSecret(url.QueryEscape(v))
			}
		}
	}
}

// addHeader adds the values of a request's secret header fields.
func (m *masker) addHeader(h http.Header) {
	for name, values := range h {
		if secretmask.IsSecretName(name) {
			for _, v := range values {
				m.addCredential(v)
			}
		}
	}
}

// addCredential adds a header value, without its scheme such as "Bearer".
func (m *masker) addCredential(value string) {
	value = strings.TrimSpace(value)
	if scheme, rest, ok := strings.Cut(value, " "); ok && !strings.ContainsAny(scheme, "=,;") {
		m.addSecret(rest)
		return
	}
	m.addSecret(value)
}
