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

	"github.com/dowel-mcp/dowel/transport/stdio"
)

// program is the program that shells run.
type program struct {
	command   stdio.Command
	bash      bool
	sandboxed bool
	note      string // a note about it for the model
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
		p.note = fmt.Sprintf("there is no bash: commands run in %s, so keep to POSIX sh", path)
		if o.Shell != "" {
			p.note = fmt.Sprintf("commands run in %s: keep to POSIX sh", path)
		}
	}
	p.command = stdio.Command{
		Path: path, Args: args, Dir: o.Dir, Env: map[string]string{"TERM": "dumb", "PAGER": "cat", "ENV": ""}, CleanEnv: o.CleanEnv,
		Grace: noTime, KillAfter: killAfter, StderrRing: 4 << 10,
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

// setEnvironment gives a command the environment of this process, without the keys that it is not
// to have.
func (o *Options) setEnvironment(c *stdio.Command) {
	kept := func(name string) bool { return !slices.Contains(ModelKeys, name) || slices.Contains(o.Keys, name) }
	if !slices.ContainsFunc(ModelKeys, func(name string) bool { _, set := os.LookupEnv(name); return set && !kept(name) }) {
		return // it inherits everything by itself
	}
	c.CleanEnv = true
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if _, given := c.Env[name]; !given && name != "" && name != "PWD" && kept(name) { // PWD is where the command begins
			c.Env[name] = value
		}
	}
}

// findShell returns the path of the shell of that name, or of the first candidate that there is.
func findShell(name string, candidates ...string) (string, error) {
	if name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("the program for shells: %w", err)
		}
		return filepath.Abs(path)
	}
	for _, candidate := range candidates {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither bash nor sh is on PATH or in /bin: install bash, or name a POSIX shell")
}

// wrapInSandbox has the program run in bubblewrap.
func (p *program) wrapInSandbox(o *Options) error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return fmt.Errorf("%w: install the package bubblewrap (Linux only), or do without the sandbox: %w", ErrSandbox, err)
	}
	if o.Dir, err = filepath.EvalSymlinks(o.Dir); err != nil { // bwrap mounts nothing at a link
		return fmt.Errorf("the folder for shells: %w", err)
	}
	args := append(sandboxOptions(o.Dir, homeFolders(), o.Network), "--", p.command.Path)
	if err := tryOut(bwrap, args); err != nil {
		return err
	}
	p.command.Args = append(args, p.command.Args...)
	p.command.Path = bwrap
	p.command.CleanEnv = true
	p.command.Dir = o.Dir
	p.sandboxed = true
	return nil
}

// tryOut runs a command that does nothing in the sandbox: in many containers bubblewrap is there
// and may do nothing, and that had better be known before the first command.
func tryOut(bwrap string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, bwrap, append(slices.Clone(args), "-c", ":")...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(string(out[:min(len(out), 500)])); said != "" {
		err = errors.New(strings.ToValidUTF8(said, "\uFFFD"))
	}
	return fmt.Errorf("%w: bubblewrap is installed and fails; where user namespaces are not allowed, as in many containers, allow them or do without the sandbox: %w", ErrSandbox, err)
}

// sandboxOptions returns bwrap's options. Later ones are mounted over earlier ones. The shell has a
// session of its own, and so a process group that can be interrupted without bwrap.
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
		return append(args, "--chdir", dir) // nothing that could be made writable
	}
	return append(args, "--bind", dir, dir, "--chdir", dir)
}

// containsPath reports whether inner is dir or lies within it.
func containsPath(dir, inner string) bool {
	rel, err := filepath.Rel(dir, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// homeFolders returns the user's home folders: from the environment, and from the account.
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
