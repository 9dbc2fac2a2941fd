package daemon

import (
	"context"

	"github.com/dowel-mcp/dowel/auth/desktop"
	"github.com/dowel-mcp/dowel/internal/control"
)

// LogIn implements [control.Controller]. The browser that shows the page must be on this machine,
// or have the port forwarded.
func (d *Daemon) LogIn(ctx context.Context, name string, show func(control.LoginPage)) error {
	t, err := d.source.Login(name, &desktop.Login{
		Show:        func(p desktop.Page) { show(control.LoginPage{URL: p.URL, Port: p.Port}) },
		OpenBrowser: desktop.NoBrowser,
		Warn:        func(err error) { d.options.Warn("the login at %s: %v", name, err) },
	})
	if err != nil {
		return err
	}
	if err := t.Login(ctx); err != nil {
		return err
	}
	return d.Do(ctx, name, "restart")
}
