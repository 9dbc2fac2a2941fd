package auth

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/oauth"
)

// refusal returns the error of an unexpected answer. If code and description are empty, the error
// shows the beginning of the answer. It does not if the status says that the answer holds tokens,
// in a form that was not understood.
func (a *answer) refusal(endpoint, code, description string) *TokenError {
	switch {
	case code != "":
	case a.status >= 200 && a.status < 300:
		media := a.header.Get("Content-Type")
		if media == "" {
			media = "unknown type"
		}
		description = fmt.Sprintf("an answer of another form, %d bytes of %s", len(a.body), media)
	default:
		description = string(a.body)
	}
	return &TokenError{Endpoint: endpoint, Status: a.status, Code: shorten(a.mask(code)), Description: shorten(a.mask(description))}
}

const masked = "***"

// secretNames are parameters of requests and answers that no error may show.
var secretNames = []string{
	"access_token", "refresh_token", "id_token", "token", "subject_token", "client_secret", "client_assertion", "assertion",
	"device_code", "code_verifier", "password", "registration_access_token",
}

// secretPattern matches a secret in JSON, in a form, or in a sentence.
var secretPattern = lazyregexp.New(`(?i)\b(` + strings.Join(secretNames, "|") + `)("?\s*[=:]\s*"?)[^"&\s,;}<>]+`)

// mask hides secrets in the text of an answer: the secrets that were sent to the server, and the
// values of members with a name of secretNames.
func (a *answer) mask(text string) string {
	for _, secret := range a.sent {
		text = strings.ReplaceAll(text, secret, masked)
	}
	return secretPattern().ReplaceAllString(text, "$1$2"+masked)
}

// sentSecrets returns the secrets of a request, in its body as a form and in its header.
func sentSecrets(body string, header http.Header) (secrets []string) {
	const shortest = 6 // a shorter one would hide other text
	add := func(value string) {
		if len(value) >= shortest {
			secrets = append(secrets, value)
		}
	}
	form, _ := url.ParseQuery(body) // of a body in JSON, names that are none of ours
	for name, values := range form {
		if name == "code" || slices.Contains(secretNames, name) { // "code: 53003" is the number of an error
			add(values[0])
		}
	}
	scheme, value, _ := strings.Cut(header.Get("Authorization"), " ")
	add(value)
	if scheme == "Basic" {
		pair, _ := base64.StdEncoding.DecodeString(value) // of authenticate
		_, password, _ := strings.Cut(string(pair), ":")
		secret, _ := url.QueryUnescape(password)
		add(password)
		add(secret)
	}
	for _, proof := range header[oauth.HeaderDPoP] {
		add(proof)
	}
	return secrets
}
