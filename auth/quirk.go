package auth

import (
	"net/url"
	"slices"
	"strings"
)

// quirks are deviations of well-known authorization servers, which their metadata does not tell.
type quirks struct {
	omitResource bool // refuses the parameter resource (AADSTS9010010)
	assumePKCE   bool // knows PKCE and does not say so
	noConsent    bool // refuses prompt=consent to users who may not consent
	refreshScope bool // wants the scopes in a refresh (AADSTS90009)
}

var entraHosts = []string{"login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn"}

// quirksOf returns the quirks of an issuer.
func quirksOf(issuer string) quirks {
	u, err := url.Parse(issuer)
	if err == nil && slices.Contains(entraHosts, strings.ToLower(u.Hostname())) {
		return quirks{omitResource: true, assumePKCE: true, noConsent: true, refreshScope: true}
	}
	return quirks{}
}
