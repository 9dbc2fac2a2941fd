package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	shellAnswers   = 5 * time.Second
	maxShellOutput = 1 << 20 // limit for the output of startup files, in bytes
	pathKept       = 5 * time.Minute
)

// loginPaths caches the answers of login shells. It also caches failures, so that a startup file
// that hangs is waited for only once.
var loginPaths = newShellPathCache(shellAnswers)

type shellKey struct{ shell, home, path string }

type shellAnswer struct {
	dirs []string
	err  error
	at   time.Time
}

type shellPathCache struct {
	lock    chan struct{} // capacity 1; held while answers is used
	answers map[shellKey]shellAnswer
	timeout time.Duration
}

func newShellPathCache(timeout time.Duration) *shellPathCache {
	return &shellPathCache{lock: make(chan struct{}, 1), answers: make(map[shellKey]shellAnswer), timeout: timeout}
}

// loginPath returns the PATH that the user has in a terminal.
func loginPath(ctx context.Context) (shell string, dirs []string, err error) {
	shell = loginShell()
	dirs, err = loginPaths.lookupPath(ctx, shell)
	return shell, dirs, err
}

// lookupPath holds the lock while the shell runs, so that servers that start at the same time
// share one answer.
func (m *shellPathCache) lookupPath(ctx context.Context, shell string) ([]string, error) {
	select {
	case m.lock <- struct{}{}:
		defer func() { <-m.lock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	key := shellKey{shell, os.Getenv("HOME"), os.Getenv("PATH")}
	if a, ok := m.answers[key]; ok && time.Since(a.at) < pathKept {
		return a.dirs, a.err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, m.timeout, fmt.Errorf("it did not answer within %v", m.timeout))
	defer cancel()
	path, err := askShell(bounded, shell)
	a := shellAnswer{dirs: filepath.SplitList(path), err: err, at: time.Now()}
	if ctx.Err() == nil {
		m.answers[key] = a
	}
	return a.dirs, a.err
}

func loginShell() string {
	if shell := os.Getenv("SHELL"); filepath.IsAbs(shell) {
		return shell
	}
	for _, shell := range []string{map[string]string{"darwin": "/bin/zsh"}[runtime.GOOS], "/bin/bash"} {
		if isExecutable(shell) {
			return shell
		}
	}
	return "/bin/sh"
}

// askShell runs an interactive login shell, because nvm and similar tools set PATH only there.
// The script is valid in every common shell, and markers separate its output from the output of
// startup files. The shell is a Child, so background processes of startup files end with it.
func askShell(ctx context.Context, shell string) (string, error) {
	if !isExecutable(shell) {
		return "", errors.New("it is not an executable file")
	}
	mark := "dowel-" + rand.Text()
	ask := Command{
		Path:  shell,
		Env:   map[string]string{"DOWEL_RESOLVING_PATH": "1", "TERM": "dumb", "DISABLE_AUTO_UPDATE": "true"},
		Grace: -1, KillAfter: 200 * time.Millisecond,
	}
	env, err := ask.buildEnv("")
	if err != nil {
		return "", err
	}
	script := `/bin/sh -c 'printf "%s%s%s" ` + mark + ` "$PATH" ` + mark + `'`
	// A leading "-" in argv[0] makes any shell a login shell, even one without an option for it.
	child, err := ask.startProgram(resolvedProgram{file: shell, argv: []string{"-" + filepath.Base(shell), "-i", "-c", script}, env: env})
	if err != nil {
		return "", err
	}
	defer child.Close()
	defer context.AfterFunc(ctx, func() { child.Close() })()
	_ = child.CloseWrite()
	path, err := readMarked(child, mark)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return path, err
}

// readMarked reads up to the second mark and returns the text between the two marks.
func readMarked(child *Child, mark string) (string, error) {
	var talk bytes.Buffer
	buf := make([]byte, 4096)
	for talk.Len() < maxShellOutput {
		n, err := child.Read(buf)
		talk.Write(buf[:n])
		if parts := bytes.SplitN(talk.Bytes(), []byte(mark), 3); len(parts) == 3 {
			return string(parts[1]), nil
		}
		if err != nil {
			return "", errors.New("it ended without an answer")
		}
	}
	return "", fmt.Errorf("it printed %d bytes without an answer", maxShellOutput)
}
