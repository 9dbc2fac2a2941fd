// Package authquirks names the real authorization servers that tests imitate.
package authquirks

// Servers are the quirks of real servers as they were seen in 2026.
var Servers = map[string]string{
	"asana":      "no-registration no-documents redirect-exact resource-elsewhere",
	"atlassian":  "redirect-exact lost-client-html",
	"auth0":      "issuer-slash audience-parameter refresh-offline-scope plain-type",
	"cloudflare": "refresh-early-refused",
	"cognito":    "no-registration no-documents openid-only wellknown-400 no-challenge-methods iss-none",
	"entra": "no-registration no-documents resource-refused refresh-wants-scope prompt-refused no-challenge-methods refresh-offline-scope " +
		"resource-ignored plain-type openid-appended-only iss-none",
	"context7":   "issuer-other iss-none",
	"figma":      "registration-refused method-unsaid registration-secret",
	"front":      "resource-origin",
	"github":     "no-registration no-documents redirect-exact form-answers token-type-lower iss-none",
	"google":     "issuer-slash no-registration no-documents refresh-access-type no-rotation challenge-per-tool",
	"hydra":      "audience-empty iss-none",
	"keycloak":   "resource-ignored plain-type no-documents",
	"linear":     "redirect-exact rotation-grace iss-none",
	"miro":       "refresh-invalid",
	"notion":     "no-documents",
	"okta":       "registration-token no-documents openid-only refresh-offline-scope resource-ignored",
	"salesforce": "issuer-other iss-none",
	"sentry":     "iss-unadvertised",
	"skyvern":    "issuer-other iss-none",
	"slack":      "no-registration no-documents ok-false token-type-user comma-scopes",
	"stripe":     "oauth-only",
	"supabase":   "lost-client-page no-documents",
	"workos":     "resource-listed",
}
