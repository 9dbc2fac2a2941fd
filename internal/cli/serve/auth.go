package serve

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/suggest"
)

// authKeys are the keys of --auth.
var authKeys = []string{"issuer", "audience", "url", "scope", "dpop", "requireType"}

// parseAuth reads the value of --auth: pairs KEY=VALUE, separated by commas. Keys for lists may
// occur more than once.
func parseAuth(text string) (a config.GatewayAuth, err error) {
	for _, pair := range strings.Split(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if !found || value == "" {
			return a, exit.Usagef("--auth: %q is not KEY=VALUE: want issuer=URL, and optionally audience, url, scope, dpop or requireType", pair)
		}
		switch key {
		case "issuer":
			a.Issuers = append(a.Issuers, value)
		case "audience":
			a.Audiences = append(a.Audiences, value)
		case "scope":
			a.Scopes = append(a.Scopes, value)
		case "url":
			a.URL = value
		case "dpop":
			if value != "offered" && value != "required" {
				return a, exit.Usagef("--auth: dpop=%s: want offered or required", value)
			}
			a.DPoP = value
		case "requireType":
			if a.RequireType = value == "true"; value != "true" && value != "false" {
				return a, exit.Usagef("--auth: requireType=%s: want true or false", value)
			}
		default:
			return a, exit.Usagef("--auth: the key %q does not exist%s", key, suggest.Hint(key, authKeys))
		}
	}
	if !a.IsSet() {
		return a, exit.Usagef("--auth names no authorization server: add issuer=URL")
	}
	return a, nil
}
