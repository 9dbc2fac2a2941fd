package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/version"
)

// controller is a hub in a program that is not dowel.
type controller struct {
	hub     *hub.Hub
	started time.Time
}

func newController(h *hub.Hub) *controller { return &controller{h, time.Now()} }

// errProgramDecides is the error of everything that the program does itself.
var errProgramDecides = errors.New("the program to which this console belongs decides on its servers: here they can be restarted")

// Status implements [control.Controller].
func (c *controller) Status() control.Status {
	return control.Status{PID: os.Getpid(), Version: version.Number(), Started: c.started, Files: []string{}, Servers: control.DescribeAll(c.hub)}
}

// Do implements [control.Controller]. Only restart does something.
func (c *controller) Do(_ context.Context, name, verb string) error {
	u := c.hub.Upstream(name)
	switch {
	case u == nil:
		return fmt.Errorf("%w: %s", control.ErrNoServer, name)
	case verb != "restart":
		return errProgramDecides
	case u.State().Status.Held():
		return fmt.Errorf("%s is %s: %s", name, u.State().Status, u.State().Cause)
	}
	u.Restart("requested in the console")
	return nil
}

// TrustQuestion implements [control.Controller].
func (*controller) TrustQuestion(string) (control.TrustQuestion, error) {
	return control.TrustQuestion{}, errProgramDecides
}

// Trust implements [control.Controller].
func (*controller) Trust(context.Context, string, control.TrustAnswer) error {
	return errProgramDecides
}

// OpenConsole implements [control.Controller].
func (*controller) OpenConsole(context.Context) (control.ConsoleLogin, error) {
	return control.ConsoleLogin{}, errProgramDecides
}

// Token implements [control.Controller].
func (*controller) Token(context.Context, bool) (string, error) { return "", errProgramDecides }

// Reload implements [control.Controller].
func (*controller) Reload(context.Context) error { return errProgramDecides }

// LogIn implements [control.Controller].
func (*controller) LogIn(context.Context, string, func(control.LoginPage)) error {
	return errProgramDecides
}

// Logout implements [control.Controller].
func (*controller) Logout(context.Context, control.Login) error { return errProgramDecides }

// Yield implements [control.Controller].
func (*controller) Yield(context.Context) error { return errProgramDecides }

// RequestStop implements [control.Controller].
func (*controller) RequestStop(context.Context) error { return errProgramDecides }

// ClusterSync implements [control.Controller]. The console shows no cluster of the program.
func (*controller) ClusterSync(context.Context) replica.Sync { return replica.SyncUnknown }
