package wiretest

import (
	"fmt"
	"regexp"
)

// RFC 3986, as far as it can be told without the scheme: net/url refuses what it allows, such as a percent-encoded host.
var uriPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$`)

// RFC 6570: literals and expressions.
var templatePattern = regexp.MustCompile(`^(?:[^{}\x00-\x20"'<>\\^` + "`" + `|]|\{[+#./;?&=,!@|]?[A-Za-z0-9_.%,:*]+\})*$`)

func uriText(v any) error { return matches(v, uriPattern, "uri") }

func templateText(v any) error { return matches(v, templatePattern, "uri template") }

func matches(v any, pattern *regexp.Regexp, what string) error {
	if s, ok := v.(string); ok && !pattern.MatchString(s) {
		return fmt.Errorf("%q is no %s", s, what)
	}
	return nil
}
