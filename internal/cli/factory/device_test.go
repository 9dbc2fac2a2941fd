package factory

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/desktop"
)

// A user without a browser logs in by a code, and one with a browser only if the server has no page
// for browsers. If the server gives no code, the page is the way.
func TestWaysOfLogin(t *testing.T) {
	noPage, noCode := errors.New("no page"), errors.New("no code")
	for name, tt := range map[string]struct {
		login     userLogin
		device    error // of a server with codes, before it gives one
		noDevice  bool
		steps     string // in order
		wantError error
	}{
		"a browser":                      {steps: "page code"}, // the page fails in this test
		"no browser":                     {login: userLogin{prefersCode: true}, steps: "code"},
		"no browser, no code":            {login: userLogin{prefersCode: true}, device: noCode, steps: "code page", wantError: noPage},
		"no browser, no codes at all":    {login: userLogin{prefersCode: true}, noDevice: true, steps: "page", wantError: noPage},
		"a code alone":                   {login: userLogin{codeOnly: true}, steps: "code"},
		"a code alone, which fails":      {login: userLogin{codeOnly: true}, device: noCode, steps: "code", wantError: noCode},
		"a code alone, no codes at all":  {login: userLogin{codeOnly: true}, noDevice: true, wantError: errNoDeviceFlow},
		"a browser, and no codes at all": {noDevice: true, steps: "page", wantError: noPage},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []string
			r := auth.LoginRequest{Server: "https://a.example/mcp", Start: func(context.Context, string) (string, error) {
				steps = append(steps, "page")
				return "", noPage
			}}
			if !tt.noDevice {
				r.Device = func(_ context.Context, show func(auth.DeviceCode)) error {
					steps = append(steps, "code")
					if tt.device == nil {
						show(auth.DeviceCode{Code: "ABCD"})
					}
					return tt.device
				}
			}
			l := tt.login
			l.browser = &desktop.Login{Show: func(desktop.Page) { t.Error("a page is shown") }, OpenBrowser: desktop.NoBrowser}
			l.show = func(string, auth.DeviceCode) {}
			_, err := l.Login(t.Context(), r)
			if got := strings.Join(steps, " "); got != tt.steps || !errors.Is(err, tt.wantError) {
				t.Errorf("%s, %v; want %s, %v", got, err, tt.steps, tt.wantError)
			}
		})
	}
}
