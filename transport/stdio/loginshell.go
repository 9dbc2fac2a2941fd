package stdio

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
	shellAnswers = 5 * time.Second
	shellTalk    = 1 << 20 // bytes of a startup file's chatter that are listened to
	pathKept     = 5 * time.Minute
)

// loginPaths remembers what login shells said, also that they said nothing: a hanging startup file is waited for once.
var loginPaths = newShellMemory(shellAnswers)

type shellKey struct{ shell, home, path string }

type shellAnswer struct {
	dirs []string
	err  error
	at   time.Time
}

type shellMemory struct {
	turn     chan struct{} // cap 1, held by whoever uses answers
	answers  map[shellKey]shellAnswer
	patience time.Duration
}

func newShellMemory(patience time.Duration) *shellMemory {
	return &shellMemory{turn: make(chan struct{}, 1), answers: make(map[shellKey]shellAnswer), patience: patience}
}

// loginPath is the PATH that the user has in a terminal.
func loginPath(ctx context.Context) (shell string, dirs []string, err error) {
	shell = loginShell()
	dirs, err = loginPaths.ask(ctx, shell)
	return shell, dirs, err
}

// ask keeps its turn while the shell runs, so that many servers started at once ask it once.
func (m *shellMemory) ask(ctx context.Context, shell string) ([]string, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	key := shellKey{shell, os.Getenv("HOME"), os.Getenv("PATH")}
	if a, ok := m.answers[key]; ok && time.Since(a.at) < pathKept {
		return a.dirs, a.err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, m.patience, fmt.Errorf("it did not answer within %v", m.patience))
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
		if executable(shell) {
			return shell
		}
	}
	return "/bin/sh"
}

// askShell runs an interactive login shell: nvm and its like live in the files that only such a one reads. What is run
// in it is the same in every shell's language; the markers tell the answer from what startup files print. The shell is
// a Child, so its whole tree ends here, with what startup files leave in the background.
func askShell(ctx context.Context, shell string) (string, error) {
	if !executable(shell) {
		return "", errors.New("it is not an executable file")
	}
	mark := "dowel-" + rand.Text()
	ask := Command{
		Path:       shell,
		Env:        map[string]string{"DOWEL_RESOLVING_PATH": "1", "TERM": "dumb", "DISABLE_AUTO_UPDATE": "true"},
		StderrRing: -1,
		Grace:      -1, KillAfter: 200 * time.Millisecond,
	}
	env, err := ask.environ("")
	if err != nil {
		return "", err
	}
	script := `/bin/sh -c 'printf "%s%s%s" ` + mark + ` "$PATH" ` + mark + `'`
	// A first argument that begins with "-" makes any shell a login shell, also those without an option for it.
	child, err := ask.start(program{file: shell, argv: []string{"-" + filepath.Base(shell), "-i", "-c", script}, env: env})
	if err != nil {
		return "", err
	}
	defer child.Close()
	defer context.AfterFunc(ctx, func() { child.Close() })()
	child.CloseWrite()
	path, err := readMarked(child, mark)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return path, err
}

// readMarked reads up to the second mark, and returns what stands between the two.
func readMarked(child *Child, mark string) (string, error) {
	var talk bytes.Buffer
	buf := make([]byte, 4096)
	for talk.Len() < shellTalk {
		n, err := child.Read(buf)
		talk.Write(buf[:n])
		if parts := bytes.SplitN(talk.Bytes(), []byte(mark), 3); len(parts) == 3 {
			return string(parts[1]), nil
		}
		if err != nil {
			return "", errors.New("it ended without an answer")
		}
	}
	return "", fmt.Errorf("it printed %d bytes without an answer", shellTalk)
}
