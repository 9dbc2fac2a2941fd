package oauth

import (
	"regexp"
	"testing"
)

func TestPKCE(t *testing.T) {
	t.Parallel()
	// The example of RFC 7636, appendix B.
	if got := CodeChallenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"); got != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" {
		t.Errorf("challenge %s", got)
	}
	v := NewVerifier()
	if !regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`).MatchString(v) || v == NewVerifier() {
		t.Errorf("verifier %q", v)
	}
	if s := NewState(); len(s) < 22 || s == NewState() {
		t.Errorf("state %q", s)
	}
}
