// Package service is dowel service: it lets the service manager of the user's system, systemd or
// launchd, start dowel up at each login.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel service.
func NewCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Start dowel at each login",
		Long: `Let the service manager of your system start dowel up at each login: systemd on Linux, launchd on macOS. The service belongs to
you and runs as you; it needs no administrator.`,
	}
	cmd.AddCommand(newInstallCommand(f), newRemoveCommand(f))
	return cmd
}

func newInstallCommand(f *factory.Factory) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "install [-- FLAGS OF dowel up]",
		Short: "Start dowel now and at each login",
		Long: `Write the service's file, start the service, and wait until its gateway serves. Flags after -- are those of dowel up. Install
again to change them.`,
		Example: `  dowel service install
  dowel service install -- --http 127.0.0.1:7900 --tool-search
  dowel service install --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return exit.Usagef("%q is not a flag of dowel service install: put the flags of dowel up after --", args[0])
			}
			f.Parsed = true
			return runInstall(cmd.Context(), f, args, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the service's file instead of writing it")
	return cmd
}

func newRemoveCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "remove",
		Short: "End the service and do not start it again",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return runRemove(cmd.Context(), f)
		},
	}
}

// A manager is a service manager of an operating system.
type manager interface {
	// path returns the path of the service's file.
	path() (string, error)
	// formatFile returns the content of the service's file.
	formatFile(s spec) string
	// start starts the service of the file, or restarts it with the file's new content.
	start(ctx context.Context, path string) error
	// stop ends the service. The caller removes the file next and then calls forget.
	stop(ctx context.Context, path string) error
	// forget makes the manager notice that the file is gone.
	forget(ctx context.Context) error
	// logHint says where the service's output is.
	logHint() string
}

// A spec is a service's content.
type spec struct {
	program string
	args    []string
	env     []string // NAME=VALUE
	folder  string   // the working directory
	log     string   // the file for output, if the manager keeps none
}

// systemManager returns the service manager of this system.
func systemManager() (manager, error) {
	switch runtime.GOOS {
	case "linux":
		return systemd{}, nil
	case "darwin":
		return launchd{}, nil
	case "windows":
		return nil, errors.New(`dowel service works with systemd and launchd. On Windows, let Task Scheduler start it: schtasks /create /sc onlogon /tn dowel /tr "dowel up"`)
	}
	return nil, fmt.Errorf("dowel service works with systemd on Linux and launchd on macOS, not on %s: start dowel up --detach at login instead", runtime.GOOS)
}

// currentSpec returns the service of this program with arguments for dowel up.
func currentSpec(args []string) (spec, error) {
	program, err := os.Executable()
	if err != nil {
		return spec{}, err
	}
	// go run puts its program into a folder such as /tmp/go-build1234/b001/exe.
	if folder := filepath.Dir(program); filepath.Base(folder) == "exe" && strings.Contains(folder, string(filepath.Separator)+"go-build") {
		return spec{}, errors.New("this dowel is a temporary program of go run, which a service cannot start later: install dowel first, for example with go install ./cmd/dowel")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return spec{}, err
	}
	s := spec{program: program, args: append([]string{"up"}, args...), folder: home, log: filepath.Join(factory.StateDir(), "service.log")}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		if value := os.Getenv(name); value != "" { // the service manager does not know them
			s.env = append(s.env, name+"="+value)
		}
	}
	return s, nil
}

func runInstall(ctx context.Context, f *factory.Factory, args []string, dryRun bool) error {
	m, err := systemManager()
	if err != nil {
		return err
	}
	s, err := currentSpec(args)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, s.program, append(s.args, "--help")...).CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(string(out), "\n")
		return exit.Usagef("the flags after -- are not those of dowel up: %s", term.Line(line))
	}
	path, err := m.path()
	if err != nil {
		return err
	}
	text := m.formatFile(s)
	if dryRun {
		f.WriteNote("%s would be:", path)
		f.WriteText(text)
		return nil
	}
	running := factory.RunningDaemon()
	_, err = os.Lstat(path)
	if now, e := running.Status(ctx); errors.Is(err, fs.ErrNotExist) && e == nil && now.Gateway != "" {
		return fmt.Errorf("%w, process %d, so the service could not start: end it first with dowel down", control.ErrRunning, now.PID)
	}
	if err := writeServiceFile(path, text); err != nil {
		return err
	}
	if err := m.start(ctx, path); err != nil {
		return fmt.Errorf("%s is written, but the service was not started: %w", path, err)
	}
	now, err := awaitService(ctx, running)
	if err != nil {
		return fmt.Errorf("%w: %s", err, m.logHint())
	}
	f.WriteMessage("The service %s is installed.", path)
	f.WriteMessage("It runs as process %d. Its gateway is at %s.", now.PID, now.Gateway)
	f.WriteMessage("%s. dowel service remove ends it.", m.logHint())
	return nil
}

func writeServiceFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	_, err := atomicfile.Update(path, func([]byte, bool) ([]byte, error) { return []byte(text), nil }, atomicfile.Options{})
	return err
}

// startLimit bounds the time until a new service serves its gateway.
const startLimit = time.Minute

// awaitService waits until a dowel serves its gateway.
func awaitService(ctx context.Context, running *control.Client) (control.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the service has been started, but does not serve after %v", startLimit))
	defer cancel()
	return running.AwaitStatus(ctx, func(s control.Status, err error) bool { return err == nil && s.Gateway != "" && !s.Ending })
}

func runRemove(ctx context.Context, f *factory.Factory) error {
	m, err := systemManager()
	if err != nil {
		return err
	}
	path, err := m.path()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		f.WriteNote("The service is not installed: there is no %s.", path)
		return nil
	}
	stopErr := m.stop(ctx, path)
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := cmp.Or(stopErr, m.forget(ctx)); err != nil {
		return fmt.Errorf("%s is removed, but the service was not ended: %w; dowel down ends it", path, err)
	}
	f.WriteNote("The service %s has ended and is removed.", path)
	return nil
}
