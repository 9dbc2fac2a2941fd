package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/modelkeys"
	"github.com/dowel-mcp/dowel/internal/process"
)

// program is the program that shells run.
type program struct {
	command   process.Command
	bash      bool
	sandboxed bool
	note      string // added to the tool's description and to the first result of a shell; may be empty
}

// resolveProgram determines the program for the options.
func (o *Options) resolveProgram() (p program, err error) {
	path, err := findShell(o.Shell, "bash", "/bin/bash", "sh", "/bin/sh")
	if err != nil {
		return p, err
	}
	p.bash = strings.Contains(filepath.Base(path), "bash")
	args := []string{"-i", "+m"} // interactive, so that an interrupt ends the command and not the shell
	if p.bash {
		args = []string{"--norc", "--noediting", "-i", "+m"}
	} else {
		p.note = fmt.Sprintf("bash is not installed; commands run in %s: use only POSIX sh syntax", path)
		if o.Shell != "" {
			p.note = fmt.Sprintf("commands run in %s: use only POSIX sh syntax", path)
		}
	}
	p.command = process.Command{
		Path: path, Args: args, Dir: o.Dir, Env: map[string]string{"TERM": "dumb", "PAGER": "cat", "ENV": ""}, CleanEnv: o.CleanEnv,
		Grace: noGrace, KillAfter: killAfter, KeepDetached: o.KeepDetached,
	}
	if !o.CleanEnv && !o.Sandbox {
		o.setEnvironment(&p.command)
	}
	for name, value := range o.Env {
		p.command.Env[name] = value
	}
	if o.Sandbox {
		return p, p.wrapInSandbox(o)
	}
	return p, nil
}

// setEnvironment gives a command the environment of this process, except the [ModelKeys] that are
// not in o.Keys. It leaves c alone if none of these is set: c then inherits the environment.
func (o *Options) setEnvironment(c *process.Command) {
	for _, name := range o.Keys {
		if value, ok := modelkeys.LookupEnv(name); ok {
			c.Env[name] = value
		}
	}
	passes := func(name string) bool { return !slices.Contains(ModelKeys, name) || slices.Contains(o.Keys, name) }
	if !slices.ContainsFunc(ModelKeys, func(name string) bool { _, set := os.LookupEnv(name); return set && !passes(name) }) {
		return
	}
	c.CleanEnv = true
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		// The shell sets PWD to the folder in which it starts.
		if _, given := c.Env[name]; !given && name != "" && name != "PWD" && passes(name) {
			c.Env[name] = value
		}
	}
}

// findShell returns the path of the named shell, or of the first candidate that exists if name is
// empty.
func findShell(name string, candidates ...string) (string, error) {
	if name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("the option shell: %w", err)
		}
		return filepath.Abs(path)
	}
	for _, candidate := range candidates {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither bash nor sh is on PATH or in /bin: install bash, or set the option shell to a POSIX shell")
}

// wrapInSandbox changes the command so that the program runs in bubblewrap.
func (p *program) wrapInSandbox(o *Options) error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return fmt.Errorf("%w: install the package bubblewrap (Linux only), or turn the sandbox off: %w", ErrSandbox, err)
	}
	if o.Dir, err = filepath.EvalSymlinks(o.Dir); err != nil { // bwrap cannot mount at a symbolic link
		return fmt.Errorf("the folder of the shells: %w", err)
	}
	args := append(sandboxOptions(o.Dir, homeFolders(), o.Network), hideFolders(o.Dir, dowelFolders(homeFolders()))...)
	args = append(args, "--", p.command.Path)
	if err := testSandbox(bwrap, args); err != nil {
		return err
	}
	p.command.Args = append(args, p.command.Args...)
	p.command.Path = bwrap
	p.command.CleanEnv = true
	p.command.Dir = o.Dir
	p.sandboxed = true
	return nil
}

// testSandbox runs an empty command in the sandbox. In many containers bubblewrap is installed but
// lacks permissions; the user should learn that when the server starts, not from the first command.
func testSandbox(bwrap string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, bwrap, append(slices.Clone(args), "-c", ":")...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if message := strings.TrimSpace(string(out[:min(len(out), 500)])); message != "" {
		err = errors.New(strings.ToValidUTF8(message, "\uFFFD"))
	}
	return fmt.Errorf("%w: bubblewrap is installed but fails. If this system does not allow user namespaces, as in many containers, allow them or turn the sandbox off: %w", ErrSandbox, err)
}

// sandboxOptions returns the options of bwrap. It mounts them in order, so a later mount hides an
// earlier one. --new-session gives the shell a process group without bwrap, so that an interrupt
// does not reach bwrap.
func sandboxOptions(dir string, homes []string, network bool) []string {
	args := []string{
		"--die-with-parent", "--new-session", "--unshare-all", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--tmpfs", "/tmp", "--tmpfs", "/run",
	}
	if network {
		args = append(args, "--share-net", "--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve")
	}
	for _, home := range homes {
		if home != "/" && !containsPath(dir, home) {
			args = append(args, "--tmpfs", home)
		}
	}
	if slices.Contains([]string{"/", "/dev", "/proc"}, dir) {
		return append(args, "--chdir", dir) // these folders must stay read-only
	}
	return append(args, "--bind", dir, dir, "--chdir", dir)
}

// hideFolders returns the options of bwrap that put empty folders in place of existing ones. A
// folder that holds the shell's own folder dir stays.
func hideFolders(dir string, folders []string) (args []string) {
	for _, folder := range folders {
		folder, err := filepath.EvalSymlinks(folder)
		if err == nil && !containsPath(folder, dir) {
			args = append(args, "--tmpfs", folder)
		}
	}
	return args
}

// dowelFolders returns the folders of dowel's socket, state and configuration.
func dowelFolders(homes []string) (all []string) {
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		if folder := os.Getenv(name); filepath.IsAbs(folder) {
			all = append(all, filepath.Join(folder, "dowel"))
		}
	}
	for _, home := range homes {
		all = append(all, filepath.Join(home, ".local", "state", "dowel"), filepath.Join(home, ".config", "dowel"))
	}
	return all
}

// containsPath reports whether inner is dir or lies within it.
func containsPath(dir, inner string) bool {
	rel, err := filepath.Rel(dir, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// homeFolders returns the home folders of the environment and of the account, which can differ.
func homeFolders() (all []string) {
	named, _ := os.UserHomeDir()
	dirs := []string{named}
	if account, err := user.Current(); err == nil {
		dirs = append(dirs, account.HomeDir)
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if dir, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}
