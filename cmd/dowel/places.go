package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/spf13/cobra"
)

// places say where configuration and state are.
type places struct {
	files   []string
	project string
}

func (p *places) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.files, "config", nil, "read this `file` instead of all others (repeatable)")
	cmd.Flags().StringVar(&p.project, "project", "", "the `folder` of the project (default: the current one)")
}

// config says where the files are.
func (p *places) config() (config.Options, error) {
	folder := p.project
	if folder == "" {
		folder = "."
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return config.Options{}, err
	}
	o := config.Options{Project: folder}
	for _, file := range p.files {
		if file, err = filepath.Abs(file); err != nil {
			return o, err
		}
		if _, err := os.Stat(file); err != nil {
			return o, usagef("--config: %w", err)
		}
		o.Files = append(o.Files, file)
	}
	return o, nil
}

// socket is where a running dowel of the user is reached.
func (p *places) socket() string { return control.Path(runtimeDir(), stateDir()) }

// stateDir is the folder of what dowel keeps of the user's choices; empty where there is none.
func stateDir() string {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// choices opens what the user has chosen.
func (a *app) choices() (*state.State, error) {
	return openState(func(err error) { a.warn("%v", err) })
}

func openState(warn func(error)) (*state.State, error) {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return nil, err
	}
	return state.Open(path, state.Options{Warn: warn})
}

// look reads the configuration, and starts nothing.
func (a *app) look(where places) (*configured.Source, error) {
	o, err := where.config()
	if err != nil {
		return nil, err
	}
	store, err := a.choices()
	if err != nil {
		return nil, err
	}
	s := configured.New(hub.New(nil), configured.Options{Config: o, Choices: store, Logger: slog.New(a.notices())})
	s.Look()
	return s, nil
}

// definitions are those of the configuration.
func (a *app) definitions(where places) ([]hub.Definition, error) {
	s, err := a.look(where)
	if err != nil {
		return nil, err
	}
	return s.Look(), nil
}

// runtimeDir is the folder of what lives as long as the user's session; empty where there is none.
func runtimeDir() string { return os.Getenv("XDG_RUNTIME_DIR") }

func running() *control.Client { return control.NewClient(new(places).socket()) }

// daemonOptions are the options of a daemon, or of a proxy for one, whose configuration is at some places.
func (a *app) daemonOptions(where *places) daemonOptions {
	return daemonOptions{
		chosen: len(where.files) > 0 || where.project != "",
		socket: where.socket(), config: where.config, state: a.choices,
		logger: slog.New(a.notices()), warn: a.warn, notice: a.notice,
	}
}
