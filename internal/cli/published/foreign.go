package published

import (
	"context"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/install/link"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// addLink adds the server of an install link.
func (a *addition) addLink(ctx context.Context, text string) (*Server, error) {
	s, err := link.Parse(text)
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	if !s.Valid() {
		return nil, exit.Usagef("the install link cannot be used: %v", s.Problems[0])
	}
	if s.HeadersHelper != "" || s.EnvFile != "" {
		return nil, exit.Usagef("the install link is refused: it has a headersHelper or an envFile, which runs or reads more than it shows")
	}
	p := &install.Plan{Name: s.Name, About: []string{s.Name + ", from an install link. Links do not tell who made them"},
		Build: func(install.Values) config.Spec { return shownSpec(s.Spec) }}
	return a.addPlan(ctx, p, s)
}

// shownSpec returns the fields of a link's entry that the user sees before the consent. Others,
// such as approvals of tools, are the user's own decisions.
func shownSpec(s config.Spec) config.Spec {
	return config.Spec{Kind: s.Kind, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers}
}

// checkSpec refuses entries of a foreign source that cannot be shown, and addresses that are not
// safe.
func checkSpec(s *config.Server) error {
	for _, word := range append([]string{s.Command, s.Dir, s.URL}, s.Args...) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			return exit.Usagef("the server is refused: its command has control characters (%s)", config.QuoteWord(word))
		}
	}
	for _, table := range []map[string]string{s.Env, s.Headers} {
		for name, value := range table {
			if strings.ContainsFunc(name+value, unicode.IsControl) {
				return exit.Usagef("the server is refused: the value of %s has control characters", config.QuoteWord(name))
			}
		}
	}
	if s.URL == "" || strings.Contains(s.URL, "${") {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err == nil {
		err = install.CheckURL(u)
	}
	if err != nil {
		return exit.Usagef("the server is refused: its address %s is not an https URL", config.QuoteWord(s.URL))
	}
	return nil
}

var environmentVariable = lazyregexp.New(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}`)

// sentVariables returns the variables of the user's environment that an entry would send to the
// address of its server, unless the user has given them as a value.
func sentVariables(s *config.Server, given install.Values) (names []string) {
	if s.URL == "" {
		return nil
	}
	texts := []string{s.URL}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		texts = append(texts, s.Headers[name])
	}
	var own strings.Builder
	for _, all := range given {
		own.WriteString(strings.Join(all, " "))
	}
	for _, m := range environmentVariable().FindAllStringSubmatch(strings.Join(texts, " "), -1) {
		if _, set := os.LookupEnv(m[1]); set && !strings.Contains(own.String(), m[0]) && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}
