package factory

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/desktop"
	"github.com/dowel-mcp/dowel/internal/term"
)

// A userLogin logs a user in with a browser of this machine, or by a code that the user enters on
// another device, if the authorization server offers that (RFC 8628).
type userLogin struct {
	browser *desktop.Login
	show    func(server string, code auth.DeviceCode)
	// codeOnly does without a browser of this machine. prefersCode does so where a
	// code is possible.
	codeOnly, prefersCode bool
}

// errNoDeviceFlow reports that --device is impossible.
var errNoDeviceFlow = errors.New("the authorization server offers no login by a code: leave out --device")

// Login implements [auth.Login].
func (l *userLogin) Login(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
	switch {
	case l.codeOnly && r.Device == nil:
		return nil, errNoDeviceFlow
	case l.codeOnly || l.prefersCode && r.Device != nil:
		shown, err := l.loginByCode(ctx, r)
		if err == nil || shown || l.codeOnly || ctx.Err() != nil {
			return nil, err
		}
		// The client may lack the permission for codes.
	}
	started := false
	start := r.Start
	r.Start = func(ctx context.Context, redirect string) (string, error) {
		page, err := start(ctx, redirect)
		started = started || err == nil
		return page, err
	}
	answer, err := l.browser.Login(ctx, r)
	if err != nil && !started && r.Device != nil && !l.prefersCode && ctx.Err() == nil { // without a page for browsers
		_, err = l.loginByCode(ctx, r)
	}
	return answer, err
}

// loginByCode waits until the user has entered a code. shown reports whether the user saw it.
func (l *userLogin) loginByCode(ctx context.Context, r auth.LoginRequest) (shown bool, err error) {
	err = r.Device(ctx, func(code auth.DeviceCode) {
		shown = true
		l.show(r.Server, code)
	})
	return shown, err
}

// showDeviceCode tells the user where to enter a code.
func (f *Factory) showDeviceCode(server string, code auth.DeviceCode) {
	if f.JSON {
		WriteJSONLine(f.Stderr, map[string]any{"login": map[string]any{"server": server, "code": code.Code, "url": code.URL, "fullUrl": code.FullURL, "expires": code.Expires}})
		return
	}
	text := fmt.Sprintf("Log in to %s with a browser on any device: open\n\n  %s\n\nand enter the code %s, until %s.",
		term.Line(server), term.Line(code.URL), f.Stderr.Bold(term.Line(code.Code)), code.Expires.Local().Format("15:04"))
	if code.FullURL != "" {
		text += "\nThis page has the code already: " + term.Line(code.FullURL)
	}
	fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(text))
}
