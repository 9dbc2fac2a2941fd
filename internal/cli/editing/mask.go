package editing

import (
	"regexp"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// pair matches a key with a string in JSON, YAML or TOML.
var pair = regexp.MustCompile(`((?:^|[\s{,])["']?([A-Za-z][\w.-]*)["']?\s*[:=]\s*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'{}\[\],]+)`)

// maskSecrets replaces the secrets in the text of a configuration file of any tool: those of its
// servers, and each value whose key has the name of a secret.
func maskSecrets(path string, text []byte) string {
	shown := string(text)
	for _, s := range config.ServersIn(path, text) {
		shown = s.Mask(shown)
	}
	return pair.ReplaceAllStringFunc(shown, func(found string) string {
		m := pair.FindStringSubmatch(found)
		if !secretmask.IsSecretName(m[2]) || m[3] == "true" || m[3] == "false" || m[3] == "null" || variable.MatchString(m[3]) {
			return found
		}
		return m[1] + `"` + secretmask.Mask + `"`
	})
}

// variable matches a value that is nothing but a variable, which is no secret.
var variable = regexp.MustCompile(`^["']?(?:[Bb]earer )?\$?\{[^}]*\}["']?$`)
