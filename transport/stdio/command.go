package stdio

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

// Command says how to start a server as a child process. The zero value of every field but Path is its
// documented default. A Command is a plain value: it can be copied and started any number of times.
type Command struct {
	// Path is a program or a script. A bare name is searched as [Resolve] does; the folder where it was found
	// joins the child's PATH when the search had to leave PATH, since npx is of no use without node beside it.
	// A path with a separator is taken relative to Dir.
	//
	// A script runs as it is when it is executable and begins with "#!" (never on Windows), and else through
	// the program that its extension names: .js .mjs .cjs .ts .mts .cts → node (TypeScript needs 22.18, 23.6 or
	// newer), .py → python3 (python on Windows), .rb → ruby, .php → php, .sh → sh; .jar → java -jar, always.
	// A bare script name that PATH does not know is looked for in Dir.
	Path string
	Args []string

	// Env is added to the environment that the child inherits, and wins over it. That environment is the whole
	// one of this process, since servers need what nobody lists (proxies, certificates, XDG folders).
	Env map[string]string
	// CleanEnv starts from a minimal environment instead: what a program needs to find itself (PATH, HOME, USER,
	// LOGNAME, SHELL, TERM, TMPDIR, LANG and their Windows kin), and no secret of the user's.
	CleanEnv bool
	// Dir is the child's working directory; "": this process's.
	Dir string

	// Stderr is given a copy of what the child writes to stderr. It is written to from one goroutine, never from
	// two at once. A Stderr that blocks never blocks the child: beyond 256 KiB of backlog bytes are left out, and a
	// line in brackets says how many. nil: stderr is only kept in the ring.
	Stderr io.Writer
	// StderrRing is how many of the last bytes of stderr are kept for [Child.Stderr] and [ExitError].
	// 0: 64 KiB; negative: none.
	StderrRing int

	// Grace is how long Close waits for the child to exit after closing its stdin, before it ends the process tree.
	// 0: 2 s; negative: not at all.
	Grace time.Duration
	// KillAfter is how long the process tree has after SIGTERM (CTRL_BREAK on Windows) before it is killed.
	// 0: 2 s; negative: no time.
	KillAfter time.Duration
}

// Start starts the child. ctx bounds the start only, never the child's life: that ends when the child exits, with
// Close, or with this process. Start is quick (a few milliseconds), except where a program is missing on PATH and
// the login shell has to be asked, which takes at most 5 s.
//
// Errors: [*NotFoundError] for a name that is found nowhere; for a path, one that wraps [fs.ErrNotExist] (no such
// program, or no such Dir), [fs.ErrPermission] (not executable), or says that it is a folder.
func (c Command) Start(ctx context.Context) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	p, err := c.program(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	child, err := c.start(p)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	return child, nil
}

// program is a Command with nothing left to look for.
type program struct {
	file string   // absolute
	argv []string // argv[0] included
	env  []string
	dir  string // absolute, or ""
}

func (c Command) program(ctx context.Context) (program, error) {
	dir, err := c.workDir()
	if err != nil {
		return program{}, err
	}
	env, err := c.environ(dir)
	if err != nil {
		return program{}, err
	}
	s := search{path: lookupEnv(env, "PATH"), dir: dir}
	f, err := s.locate(ctx, c.Path)
	if err != nil {
		return program{}, err
	}
	run, err := s.runnable(ctx, f)
	if err != nil {
		return program{}, err
	}
	p := program{file: run.file, dir: dir, env: extendPath(env, s.path, run.dirs)}
	p.argv = append(append([]string{run.file}, run.before...), c.Args...)
	if i := slices.IndexFunc(p.argv, func(a string) bool { return strings.ContainsRune(a, 0) }); i >= 0 {
		return program{}, fmt.Errorf("argument %d contains a NUL byte, which no process can be given", i)
	}
	return p, nil
}

// workDir checks Dir here because the operating system reports a missing one as if the program were missing.
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

func (c Command) environ(dir string) ([]string, error) {
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
		env = append(env, key+"="+value) // the last one wins
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

// lookupEnv finds the value that counts, which is the last.
func lookupEnv(env []string, key string) string {
	for _, entry := range slices.Backward(env) {
		k, v, ok := strings.Cut(entry, "=")
		if ok && (k == key || runtime.GOOS == "windows" && strings.EqualFold(k, key)) {
			return v
		}
	}
	return ""
}

// extendPath puts the folders behind those of PATH, so that they change nothing that PATH could already find.
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
