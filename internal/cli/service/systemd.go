package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unitName is the name of the service in systemd.
const unitName = "dowel.service"

// systemd is systemd's manager for the services of one user.
type systemd struct{}

func (systemd) path() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "systemd", "user", unitName), nil
}

func (systemd) formatFile(s spec) string {
	var b strings.Builder
	b.WriteString("# Written by dowel service install.\n" +
		"[Unit]\nDescription=dowel: MCP servers and one gateway in front of them\nDocumentation=https://github.com/dowel-mcp/dowel\n\n" +
		"[Service]\nExecStart=" + quoteUnit(s.program, "$$"))
	for _, arg := range s.args {
		b.WriteString(" " + quoteUnit(arg, "$$"))
	}
	b.WriteString("\nWorkingDirectory=" + strings.ReplaceAll(s.folder, "%", "%%") + "\n")
	for _, variable := range s.env {
		b.WriteString("Environment=" + quoteUnit(variable, "$") + "\n")
	}
	// dowel ends its servers itself. After the limit systemd kills what is left of them.
	b.WriteString("Restart=on-failure\nKillMode=mixed\nTimeoutStopSec=40\n\n[Install]\nWantedBy=default.target\n")
	return b.String()
}

// quoteUnit quotes a word of a unit file. dollar replaces each dollar sign.
func quoteUnit(word, dollar string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", dollar, "\n", `\n`).Replace(word) + `"`
}

func (systemd) start(ctx context.Context, _ string) error {
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unitName}, {"restart", unitName}} {
		if err := runSystemctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (systemd) stop(ctx context.Context, _ string) error {
	return runSystemctl(ctx, "disable", "--now", unitName)
}

func (systemd) forget(ctx context.Context) error { return runSystemctl(ctx, "daemon-reload") }

func (systemd) logHint() string { return "Its log: journalctl --user -u dowel" }

// runSystemctl runs systemctl --user. Its error says what to do without a user manager.
func runSystemctl(ctx context.Context, args ...string) error {
	err := runQuietly(ctx, "systemctl", append([]string{"--user"}, args...)...)
	if err != nil {
		return fmt.Errorf("%w; without systemd for users, use dowel up --detach", err)
	}
	return nil
}

// runQuietly runs a program. The error has what the program wrote.
func runQuietly(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if out = bytes.TrimSpace(out); err == nil || errors.Is(err, exec.ErrNotFound) || len(out) == 0 {
		return err
	}
	return fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), out)
}
