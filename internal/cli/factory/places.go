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

// Places say where configuration and state are.
type Places struct {
	Files   []string
	Project string
}

func (p *Places) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.Files, "config", nil, "read this `file` instead of all others (repeatable)")
	cmd.Flags().StringVar(&p.Project, "project", "", "the `folder` of the project (default: the current one)")
}

// ConfigOptions says where the files are.
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

// SocketPath is where a running dowel of the user is reached.
func (p *Places) SocketPath() string { return control.Path(runtimeDir(), StateDir()) }

// StateDir is the folder of what dowel keeps of the user's choices; empty where there is none.
func StateDir() string {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// OpenState opens what the user has chosen.
func (f *Factory) OpenState() (*state.State, error) {
	return OpenState(func(err error) { f.Warn("%v", err) })
}

func OpenState(warn func(error)) (*state.State, error) {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return nil, err
	}
	return state.Open(path, state.Options{Warn: warn})
}

// ReadConfig reads the configuration, and starts nothing.
func (f *Factory) ReadConfig(where Places) (*configured.Source, error) {
	o, err := where.ConfigOptions()
	if err != nil {
		return nil, err
	}
	store, err := f.OpenState()
	if err != nil {
		return nil, err
	}
	s := configured.New(hub.New(nil), configured.Options{Config: o, Choices: store, Logger: slog.New(f.LogHandler())})
	s.Look()
	return s, nil
}

// Definitions are those of the configuration.
func (f *Factory) Definitions(where Places) ([]hub.Definition, error) {
	s, err := f.ReadConfig(where)
	if err != nil {
		return nil, err
	}
	return s.Look(), nil
}

// runtimeDir is the folder of what lives as long as the user's session; empty where there is none.
func runtimeDir() string { return os.Getenv("XDG_RUNTIME_DIR") }

func RunningDaemon() *control.Client { return control.NewClient(new(Places).SocketPath()) }

// DaemonOptions are the options of a daemon, or of a proxy for one, whose configuration is at some places.
func (f *Factory) DaemonOptions(where *Places) daemon.Options {
	return daemon.Options{
		ConfigGiven: len(where.Files) > 0 || where.Project != "",
		Socket:      where.SocketPath(), Config: where.ConfigOptions, State: f.OpenState,
		Logger: slog.New(f.LogHandler()), Warn: f.Warn, Notice: f.Notice,
	}
}
