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

// secretName are names that people give secrets.
var secretName = regexp.MustCompile(`(?i)key|token|secret|auth|cookie|passw|pwd|credential|signature|session|\bpat\b`)

// secretShape is what is a secret wherever it stands: credentials in a URL, and tokens of kinds that are known.
var secretShape = regexp.MustCompile(`(://)[^/\s@'"]+(@)|((?i:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}|\b(?:gh[a-z]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|eyJ)[A-Za-z0-9_.-]{12,}`)

// masker hides secrets in texts. It is safe for concurrent use.
type masker struct {
	own func(string) string // nil for none

	mu      sync.Mutex
	secrets []string // longest first
}

// text returns s without secrets.
func (m *masker) text(s string) string {
	if s == "" {
		return s
	}
	m.mu.Lock()
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	m.mu.Unlock()
	s = secretShape.ReplaceAllString(s, "${1}${3}"+hidden+"${2}")
	if m.own != nil {
		s = m.own(s)
	}
	return s
}

func (m *masker) texts(lines []string) []string {
	shown := make([]string, 0, len(lines))
	for _, line := range lines {
		shown = append(shown, shortened(m.text(line), lineRunes)) // in this order: half a secret is not recognised
	}
	return shown
}

// learn hides a value from now on. A short one is left: it would be found in every other word.
func (m *masker) learn(value string) {
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

// command learns the variables and arguments that are named like secrets.
func (m *masker) command(c *stdio.Command) {
	for name, value := range c.Env {
		if secretName.MatchString(name) {
			m.learn(value)
		}
	}
	for i, arg := range c.Args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(name, "-") || !secretName.MatchString(name):
		case joined:
			m.learn(value)
		case i+1 < len(c.Args) && !strings.HasPrefix(c.Args[i+1], "-"):
			m.learn(c.Args[i+1])
		}
	}
	for _, arg := range c.Args {
		m.headerText(arg)
	}
}

// headerText learns the value of an argument that is a header field, as proxies take it.
func (m *masker) headerText(arg string) {
	if name, value, ok := strings.Cut(arg, ":"); ok && secretName.MatchString(name) && !strings.ContainsAny(name, "/= ") {
		m.credential(value)
	}
}

// url learns the password and the secret parameters of a URL.
func (m *masker) url(u *url.URL) {
	if password, ok := u.User.Password(); ok {
		m.learn(password)
	} else if u.User != nil {
		m.learn(u.User.Username())
	}
	for name, values := range u.Query() {
		if secretName.MatchString(name) {
			for _, v := range values {
				m.learn(v)
				m.learn(url.QueryEscape(v))
			}
		}
	}
}

// header learns the secret fields of a request.
func (m *masker) header(h http.Header) {
	for name, values := range h {
		if secretName.MatchString(name) {
			for _, v := range values {
				m.credential(v)
			}
		}
	}
}

// credential learns a value that may begin with a scheme.
func (m *masker) credential(value string) {
	value = strings.TrimSpace(value)
	if scheme, rest, ok := strings.Cut(value, " "); ok && !strings.ContainsAny(scheme, "=,;") {
		m.learn(rest)
		return
	}
	m.learn(value)
}
