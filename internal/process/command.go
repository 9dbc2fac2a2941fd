package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Command describes a child process to start. The zero value of every field except Path is ready. A
// Command is a plain value: it may be copied and started any number of times. It has the fields of
// stdio.Command, which is converted to it and documents them for users.
type Command struct {
	Path     string // a name, looked up as [Resolve] describes, or a path relative to Dir; may be a script
	Args     []string
	Env      map[string]string // added to the environment of the child
	CleanEnv bool              // inherit only minimalEnv
	Dir      string            // empty means this process's directory

	// Stderr receives a copy of the child's stderr, from one goroutine; nil for no copy. If Write
	// blocks, the child does not: up to 256 KiB are queued, further bytes are omitted, and a line
	// in brackets tells how many.
	Stderr io.Writer

	Grace     time.Duration // between the end of stdin and SIGTERM; 0 means 2 s, negative no time
	KillAfter time.Duration // between SIGTERM and SIGKILL; 0 means 2 s, negative no time

	KeepDetached bool // let processes live on that have left the child's process group
}

// Start starts the child. ctx limits the start only: the child runs until it exits, Close is
// called or this process ends. Start takes a few milliseconds, or up to 5 s if the program is
// missing in PATH and the login shell must be asked.
//
// The error is a [*NotFoundError] for a name that is found nowhere. For a path, it wraps
// [fs.ErrNotExist] if the program or Dir does not exist, wraps [fs.ErrPermission] if the program
// is not executable, or says that the path is a folder.
func (c Command) Start(ctx context.Context) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	p, err := c.resolveProgram(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	child, err := c.startProgram(p)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	return child, nil
}

// resolvedProgram is a Command after all lookups.
type resolvedProgram struct {
	file string   // absolute
	argv []string // including argv[0]
	env  []string
	dir  string // absolute, or ""
	mark string // of the new tree, which env holds; or ""
}

func (c Command) resolveProgram(ctx context.Context) (resolvedProgram, error) {
	dir, err := c.workDir()
	if err != nil {
		return resolvedProgram{}, err
	}
	env, err := c.buildEnv(dir)
	if err != nil {
		return resolvedProgram{}, err
	}
	s := programSearch{path: lookupEnv(env, "PATH"), dir: dir}
	f, err := s.locateProgram(ctx, c.Path)
	if err != nil {
		return resolvedProgram{}, err
	}
	run, err := s.makeRunnable(ctx, f)
	if err != nil {
		return resolvedProgram{}, err
	}
	p := resolvedProgram{file: run.file, dir: dir}
	p.mark, p.env = markTree(extendPath(env, s.path, run.dirs), c.KeepDetached)
	p.argv = append(append([]string{run.file}, run.before...), c.Args...)
	if i := slices.IndexFunc(p.argv, func(a string) bool { return strings.ContainsRune(a, 0) }); i >= 0 {
		return resolvedProgram{}, fmt.Errorf("argument %d contains a NUL byte, which no process can be given", i)
	}
	return p, nil
}

// workDir returns the absolute Dir. It checks that Dir exists, because the operating system would
// report a missing program instead.
func (c Command) workDir() (string, error) {
	if c.Dir == "" {
		return "", nil
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return "", fmt.Errorf("working directory %q: %w", c.Dir, err)
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("working directory %q does not exist; create it or correct the path: %w", c.Dir, fs.ErrNotExist)
	case err != nil:
		return "", fmt.Errorf("working directory %q: %w", c.Dir, err)
	case !info.IsDir():
		return "", fmt.Errorf("working directory %q is a file, not a folder", c.Dir)
	}
	return dir, nil
}

func (c Command) buildEnv(dir string) ([]string, error) {
	env := os.Environ()
	if c.CleanEnv {
		env = minimalEnv()
	}
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[key]
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("environment variable %q: a name must not be empty or contain '=', and neither part a NUL byte", key)
		}
		env = append(env, key+"="+value) // the last entry for a key wins
	}
	return env, nil
}

var (
	minimalUnix    = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}
	minimalWindows = []string{"PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "TEMP", "TMP", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS"}
)

func minimalEnv() []string {
	keys := minimalUnix
	if runtime.GOOS == "windows" {
		keys = minimalWindows
	}
	var env []string
	for _, key := range keys {
		if value, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// lookupEnv returns the effective value of a key, which is the last one.
func lookupEnv(env []string, key string) string {
	for _, entry := range slices.Backward(env) {
		k, v, ok := strings.Cut(entry, "=")
		if ok && (k == key || runtime.GOOS == "windows" && strings.EqualFold(k, key)) {
			return v
		}
	}
	return ""
}

// extendPath appends the folders to PATH. They come last, so that programs that PATH already
// finds do not change.
func extendPath(env []string, path string, dirs []string) []string {
	all := filepath.SplitList(path)
	before := len(all)
	for _, dir := range dirs {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	if len(all) == before {
		return env
	}
	return append(env, "PATH="+strings.Join(all, string(filepath.ListSeparator)))
}
