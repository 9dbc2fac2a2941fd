package doctor

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/transport/stdio"
)

const hidden = "…"

// secretName matches names that usually belong to secrets.
var secretName = regexp.MustCompile(`(?i)key|token|secret|auth|cookie|passw|pwd|credential|signature|session|\bpat\b`)

// secretShape matches secrets by their form: credentials in a URL, and well-known kinds of tokens.
var secretShape = regexp.MustCompile(`(://)[^/\s@'"]+(@)|((?i:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}|\b(?:gh[a-z]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|eyJ)[A-Za-z0-9_.-]{12,}`)

// masker hides secrets in texts. It is safe for concurrent use.
type masker struct {
	custom func(string) string // the caller's masker; may be nil

	mu      sync.Mutex
	secrets []string // longest first
}

// maskText returns s without secrets.
func (m *masker) maskText(s string) string {
	if s == "" {
		return s
	}
	m.mu.Lock()
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	m.mu.Unlock()
	s = secretShape.ReplaceAllString(s, "${1}${3}"+hidden+"${2}")
	if m.custom != nil {
		s = m.custom(s)
	}
	return s
}

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
	value = strings.TrimSpace(value)
	if len(value) < short {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.secrets, value) {
		return
	}
	m.secrets = append(m.secrets, value)
	slices.SortStableFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
}

// addCommand adds the values of variables and arguments with names of secrets.
func (m *masker) addCommand(c *stdio.Command) {
	for name, value := range c.Env {
		if secretName.MatchString(name) {
			m.addSecret(value)
		}
	}
	for i, arg := range c.Args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(name, "-") || !secretName.MatchString(name):
		case joined:
			m.addSecret(value)
		case i+1 < len(c.Args) && !strings.HasPrefix(c.Args[i+1], "-"):
			m.addSecret(c.Args[i+1])
		}
	}
	for _, arg := range c.Args {
		m.addHeaderArg(arg)
	}
}

// addHeaderArg adds the value of an argument that holds a header field, such as "Authorization:
// Bearer x".
func (m *masker) addHeaderArg(arg string) {
	if name, value, ok := strings.Cut(arg, ":"); ok && secretName.MatchString(name) && !strings.ContainsAny(name, "/= ") {
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
		if secretName.MatchString(name) {
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
		if secretName.MatchString(name) {
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
