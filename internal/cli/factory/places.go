package factory

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/spf13/cobra"
)

// Places holds the flags --config and --project. The zero value means the usual files and the
// current folder.
type Places struct {
	Files   []string
	Project string
}

// AddFlags registers the flags.
func (p *Places) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.Files, "config", nil, "read this `file` instead of all others (repeatable)")
	cmd.Flags().StringVar(&p.Project, "project", "", "the `folder` of the project (default: the current one)")
}

// ConfigOptions returns absolute paths of the configuration. A file of --config that does not exist
// is a usage error.
func (p *Places) ConfigOptions() (config.Options, error) {
	folder := p.Project
	if folder == "" {
		folder = "."
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return config.Options{}, err
	}
	o := config.Options{Project: folder}
	for _, file := range p.Files {
		if file, err = filepath.Abs(file); err != nil {
			return o, err
		}
		if _, err := os.Stat(file); err != nil {
			return o, exit.Usagef("--config: %w", err)
		}
		o.Files = append(o.Files, file)
	}
	return o, nil
}

// SocketPath returns the path of the control socket of the user's daemon.
func (p *Places) SocketPath() string { return control.Path(runtimeDir(), StateDir()) }

// StateDir returns the folder of the state file, or "" if its place is unknown.
func StateDir() string {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// SessionsDir returns the folder of saved conversations, or "" if the state folder is unknown.
func SessionsDir() string {
	if folder := StateDir(); folder != "" {
		return filepath.Join(folder, "sessions")
	}
	return ""
}

// OpenState opens the file of the user's choices, and warns on stderr.
func (f *Factory) OpenState() (*state.State, error) {
	return OpenState(func(err error) { f.Warn("%v", err) })
}

// OpenState opens the file of the user's choices. It passes warnings to warn.
func OpenState(warn func(error)) (*state.State, error) {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return nil, err
	}
	return state.Open(path, state.Options{Warn: warn})
}

// GatewayAccess returns the access to HTTP addresses with the tokens of the configuration and of
// the user's choices. change may change the settings; nil keeps them.
func (f *Factory) GatewayAccess(change func(*config.Gateway)) (*daemon.Access, error) {
	store, err := f.OpenState()
	if err != nil {
		return nil, err
	}
	o, err := new(Places).ConfigOptions()
	if err != nil {
		return nil, err
	}
	settings, err := daemon.GatewaySettings(config.Load(o))
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&settings)
	}
	access := daemon.NewAccess(settings, store)
	if _, err := access.EnsureToken(); err != nil {
		f.Warn("%v", err)
	}
	return access, nil
}

// ReadConfig reads the configuration. It starts no servers.
func (f *Factory) ReadConfig(where Places) (*configured.Source, error) {
	o, err := where.ConfigOptions()
	if err != nil {
		return nil, err
	}
	store, err := f.OpenState()
	if err != nil {
		return nil, err
	}
	s := configured.New(nil, configured.Options{Config: o, Choices: store, Logins: f.OpenLogins(), Logger: slog.New(f.LogHandler())})
	s.Look()
	return s, nil
}

// Definitions returns the servers of the configuration.
func (f *Factory) Definitions(where Places) ([]hub.Definition, error) {
	s, err := f.ReadConfig(where)
	if err != nil {
		return nil, err
	}
	return s.Look(), nil
}

// runtimeDir returns the folder for sockets of the user's session, or "" on systems without such a
// folder.
func runtimeDir() string { return os.Getenv("XDG_RUNTIME_DIR") }

// RunningDaemon returns a client of the user's daemon. It does not connect.
func RunningDaemon() *control.Client { return control.NewClient(new(Places).SocketPath()) }

// DaemonOptions returns the options of a daemon, or of a proxy for it, with the given
// configuration.
func (f *Factory) DaemonOptions(where *Places) daemon.Options {
	return daemon.Options{
		ConfigGiven: len(where.Files) > 0 || where.Project != "",
		Socket:      where.SocketPath(), Config: where.ConfigOptions, State: f.OpenState, Sessions: SessionsDir(),
		Logins: f.OpenLogins(),
		Logger: slog.New(f.LogHandler()), Warn: f.Warn, Notice: f.Notice,
	}
}
