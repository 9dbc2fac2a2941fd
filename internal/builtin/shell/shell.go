// Package shell is an MCP server that runs commands in bash, for a model that works on the machine that the server is on.
//
// It has one tool, run. Each conversation has a shell of its own that lives on between calls, with its working folder,
// variables, functions and background processes: the first call opens it and returns a handle, which further calls pass as
// the argument shell. Whoever knows a handle uses the shell, except where the transport knows who asks: then only the
// principal that opened it does.
//
// # Commands
//
// A command is evaluated as if it were typed at a prompt; it may have many lines. Its stdin is empty. Its stdout and stderr
// are one stream, in the order in which they were written, as on a terminal. But there is no terminal: what asks there for a
// password fails. Redirections that exec makes hold until the command's end, and so does set -e, which ends the shell
// where a command fails. All else stays: cd, variables, $?, options, traps, functions, aliases, descriptors from 3 to 9 but 7.
//
// The end of a command is found by a mark with a random number on a descriptor that the command does not have. A background
// process may therefore keep the command's output open; what it writes later comes with a later result.
//
// A command that takes longer than its timeout goes on: an empty command waits for it and returns what is new, ctrl+c
// interrupts it, and restart ends the shell and opens another under the same handle. A call that the client cancels
// interrupts its command. What runs under set -m has a process group of its own, which no interrupt reaches.
//
// Output is made valid UTF-8, with U+FFFD in place of what is not; NUL is shown as U+2400. Of a result's output the first
// and the last characters are kept, at most [Options].MaxOutput together.
//
// # Processes
//
// Each shell leads a session and a process group of its own. All of it ends when the shell ends, when nobody has used it
// for [Options].Idle, with [Server.Close], and with this process, also with one that is killed. What has made a session of
// its own (setsid, a daemon) has left, and is not ended; nor, where this process is killed or the system is not Linux, is
// a background process that was started under set -m.
//
// # Environment
//
// Shells inherit the environment of this process but for the keys of its user's models, see [ModelKeys]: a command has no use for
// them, and what it prints goes to the model and into logs. [Options].Keys hands them on, and [Options].Env sets any variable.
//
// # Sandbox
//
// By default a command may do what this process may. With [Options].Sandbox it runs in a bubblewrap sandbox: it can write
// to [Options].Dir and an empty /tmp alone, sees no process but its own, not the user's home folder (unless Dir is it or
// holds it), no socket in /run, no environment but a minimal one, and has no network unless [Options].Network says so. What
// has left the session ends with the sandbox too. What else the user may read can be read there: it keeps commands from doing
// harm by accident, and secrets in the home folder and the environment from them; it is no wall against an attacker.
//
// The package is for Unix: elsewhere [New] returns an error.
package shell

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Version is that of the server.
const Version = "1.0.0"

// Defaults of [Options], and limits.
const (
	DefaultTimeout   = 2 * time.Minute
	DefaultIdle      = 30 * time.Minute
	DefaultMaxShells = 16
	DefaultMaxOutput = 20_000

	MaxTimeout = time.Hour // of a call
	MaxCommand = 256 << 10 // characters of a command
)

// ModelKeys are the variables of this process that shells do not inherit unless [Options].Keys says so.
var ModelKeys = []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Dir is the folder in which shells begin, default this process's. It must exist.
	Dir string
	// Shell is the program that runs commands: a bash, or any POSIX sh. Default: bash, else sh, looked for on PATH and in /bin.
	Shell string
	// Env is added to the environment of this process, which shells inherit without [ModelKeys], and wins over it.
	Env map[string]string
	// CleanEnv has shells inherit a minimal environment, without the user's secrets. It is implied by Sandbox.
	CleanEnv bool
	// Keys are those of [ModelKeys] that shells inherit all the same, unless CleanEnv or Sandbox is set. Others are an error.
	Keys []string
	// Sandbox runs shells in a bubblewrap sandbox. Where there can be none, [New] returns an error that is [ErrSandbox].
	Sandbox bool
	// Network lets sandboxed shells use the network.
	Network bool
	// Timeout is how long a call waits for its command where it does not say, default [DefaultTimeout].
	Timeout time.Duration
	// Idle is after which time without a call a shell ends, default [DefaultIdle]; negative: never.
	Idle time.Duration
	// MaxShells bounds how many shells there are at a time, default [DefaultMaxShells].
	MaxShells int
	// MaxOutput bounds the characters of output in one result, default [DefaultMaxOutput].
	MaxOutput int
	// Server holds the options of [server.New].
	Server server.Options
}

// Server is a [server.Server] with shells behind it.
type Server struct {
	*server.Server
	opts    Options
	program program

	mu     sync.Mutex
	shells map[string]*shell
	past   []*shell // that ended a while ago, the latest last
	// opening counts the places that are taken by shells that are being opened.
	opening int
	closed  bool
	tasks   sync.WaitGroup
}

// ErrSandbox is the error for a system that has no sandbox: where bubblewrap is missing, or may not do its work.
var ErrSandbox = errors.New("there is no sandbox here")

// New returns a server that has no shell yet. It is an error if Dir is not a folder, a program is missing, there is to be a
// sandbox and can be none, or the system is no Unix.
func New(opts ...Options) (*Server, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if !supported {
		return nil, fmt.Errorf("shell: there is no POSIX shell on this system, the server needs a Unix such as Linux or macOS: %w", errors.ErrUnsupported)
	}
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	program, err := o.program()
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	if o.Server.Instructions == "" {
		o.Server.Instructions = "Runs commands in a shell that keeps its working folder and variables between calls: pass the handle that the first result returns to every further call."
	}
	s := &Server{Server: server.New("shell", Version, &o.Server), opts: o, program: program, shells: map[string]*shell{}}
	s.addTool()
	return s, nil
}

// fill puts the defaults in place.
func (o *Options) fill() (err error) {
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.Idle = orDefault(o.Idle, DefaultIdle)
	o.MaxShells = orDefault(o.MaxShells, DefaultMaxShells)
	o.MaxOutput = orDefault(o.MaxOutput, DefaultMaxOutput)
	if o.Timeout < 0 || o.Timeout > MaxTimeout || o.MaxShells < 0 || o.MaxOutput < 0 {
		return fmt.Errorf("the options Timeout (at most %v), MaxShells and MaxOutput must not be negative", MaxTimeout)
	}
	if o.Dir == "" {
		o.Dir, err = os.Getwd()
	} else {
		o.Dir, err = filepath.Abs(o.Dir)
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(o.Dir)
	if err != nil {
		return fmt.Errorf("the folder for shells: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the folder for shells: %s is no folder", o.Dir)
	}
	for _, key := range o.Keys {
		if !slices.Contains(ModelKeys, key) {
			return fmt.Errorf("the option Keys: %q is none of %s", key, strings.Join(ModelKeys, ", "))
		}
	}
	o.Env = maps.Clone(o.Env)
	return nil
}

func orDefault[T int | time.Duration](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}

// Close ends all shells with everything that runs in them, and all subscriptions. It waits for that, at most a few seconds.
// Calls that wait for a command return; new ones fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	all := maps.Clone(s.shells)
	s.mu.Unlock()
	for _, sh := range all {
		s.tasks.Go(func() { sh.end("the server was closed") })
	}
	s.tasks.Wait()
	return s.Server.Close()
}

var annotations = &mcp.ToolAnnotations{ReadOnlyHint: new(false), DestructiveHint: new(true), IdempotentHint: new(false), OpenWorldHint: new(true)}
