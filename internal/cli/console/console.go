// Package console is dowel console: it opens the console of the running dowel in a browser.
package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/internal/webpage"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel console.
func NewCommand(f *factory.Factory) *cobra.Command {
	var printURL bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "See and steer the running dowel in a browser",
		Long: `Open the console of the running dowel in your browser, logged in: its servers with their state, and all messages of all clients
as they pass. The link works once and for a minute. A page stays logged in until dowel ends, or for 12 hours without use.

The console is at the address of the gateway. If dowel serves no address, as with dowel up --stdio, it opens one on 127.0.0.1 for
the console alone. If no dowel is running, you are asked whether to start one. dowel up --console=read lets the console change
nothing, --console=off switches it off.

With --print, print the link instead, for a browser on another machine: forward the port first, such as with
ssh -L 7800:127.0.0.1:7800 HOST.`,
		Example: `  dowel console
  dowel console --print`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return runConsole(cmd.Context(), f, printURL)
		},
	}
	cmd.Flags().BoolVarP(&printURL, "print", "p", false, "print the link instead of opening it")
	return cmd
}

func runConsole(ctx context.Context, f *factory.Factory, printURL bool) error {
	running := factory.RunningDaemon()
	login, err := running.OpenConsole(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		if err = offerStart(ctx, f, err); err == nil {
			login, err = running.OpenConsole(ctx)
		}
	}
	if err != nil {
		return err
	}
	if own := version.Number(); login.Version != own {
		f.Warn("the running dowel is of version %s, this command of %s: to use this one, end the other with dowel down, and start it again", login.Version, own)
	}
	switch {
	case f.JSON:
		return f.WriteValue(login)
	case printURL:
		fmt.Fprintln(f.Stdout, login.URL)
		return nil
	}
	if err := webpage.Open(login.URL); err != nil {
		return fmt.Errorf("%w: open the link of dowel console --print yourself", err)
	}
	f.WriteNote("The console is open in your browser. Without one here, see dowel console --help.")
	return nil
}

// offerStart asks the user on a terminal whether to start dowel, and does so. Otherwise it returns
// notRunning.
func offerStart(ctx context.Context, f *factory.Factory, notRunning error) error {
	if term.Terminal(f.Stdin) == nil || !f.Stdout.IsTerminal() || f.JSON {
		return notRunning
	}
	agreed, err := consent.Ask(ctx, f, term.NewLines(f.Stdin), "No dowel is running. Start one in the background?")
	if err != nil {
		return err
	}
	if !agreed {
		return notRunning
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	up := exec.CommandContext(ctx, program, "up", "--detach")
	up.Stdout, up.Stderr = f.Stdout, f.Stderr
	if err := up.Run(); err != nil {
		return exit.ConnectError{Server: "dowel", Err: fmt.Errorf("it could not be started: %w", err)}
	}
	return nil
}
