package userlogin

import (
	"net/http"
	"slices"
	"testing"
)

// Another replica gets the cookies of its logins, and no other cookie of the host.
func TestOwnCookies(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://gateway.example.com/login/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Cookie"] = []string{"session=secret; dowel-login-login-A-B=one", "__Host-dowel-login-login-C-D=two; x-dowel-login-E=three"}
	if got, want := ownCookies(r), []string{"dowel-login-login-A-B=one", "__Host-dowel-login-login-C-D=two"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
