// Package shell is an MCP server that runs commands in bash, for a model that works on this
// machine.
//
// It has one tool, run. Each conversation has its own shell, which stays alive between calls, with
// its working folder, variables, functions and background processes. The first call opens the shell
// and returns a handle; further calls pass it as the argument shell. Every caller that knows the
// handle can use the shell, unless the transport authenticates callers: then only the principal
// that opened it can.
//
// # Commands
//
// A command is evaluated as if it were typed at a prompt; it may have many lines. Its stdin is
// empty. Its stdout and stderr are one stream, in the order of the writes, as on a terminal. Since
// the stream is not a terminal, a program that asks there for a password fails. Redirections by
// exec last until the end of the command, and so does set -e, which ends the shell if a command
// fails. The rest of the state stays: cd, variables, $?, options, traps, functions, aliases, and
// the descriptors 3 to 9 except 7.
//
// The server finds the end of a command by a mark with a random number on a descriptor that the
// command does not have. A background process may therefore keep the command's output open; its
// later output is part of a later result.
//
// A command that exceeds its timeout continues: an empty command waits for it and returns the new
// output, ctrl+c interrupts it, and restart ends the shell and opens another one under the same
// handle. If the client cancels a call, its command is interrupted. Under set -m, each job has its
// own process group, which no interrupt reaches.
//
// Output is made valid UTF-8: invalid bytes become U+FFFD, and NUL becomes U+2400. A result keeps
// the first and the last characters of the output, at most [Options].MaxOutput together.
//
// # Processes
//
// Each shell leads its own session and process group. All of its processes end when the shell ends,
// after [Options].Idle without a call, with [Server.Close], and with this process, even if it is
// killed. A process with a session of its own (setsid, a daemon) is not ended. If this process is
// killed, or on systems other than Linux, background processes started under set -m are not ended
// either.
//
// # Environment
//
// Shells inherit the environment of this process, except the API keys of the user's models, see
// [ModelKeys]: commands do not need them, and their output goes to the model and into logs.
// [Options].Keys passes keys on, and [Options].Env sets any variable.
//
// # Sandbox
//
// By default a command has the permissions of this process. With [Options].Sandbox it runs in a
// bubblewrap sandbox. There it can write only to [Options].Dir and an empty /tmp. It sees only its
// own processes, a minimal environment, no sockets in /run, and not the user's home folder, unless
// Dir is it or holds it. It has a network only with [Options].Network. Processes that have left the
// session end with the sandbox too. Other files that the user may read stay readable. The sandbox
// prevents accidents, and hides secrets in the home folder and the environment; it does not stop an
// attacker.
//
// The package is for Unix. On other systems [New] returns an error.
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

// Version is the version that the server reports.
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

// ModelKeys are the variables of this process that shells do not inherit unless [Options].Keys says
// so.
var ModelKeys = []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Dir is the folder in which shells begin, default this process's. It must exist.
	Dir string
	// Shell is the program that runs commands: a bash, or any POSIX sh. Default: bash, else sh,
	// looked for on PATH and in /bin.
	Shell string
	// Env is added to the environment of this process, which shells inherit without [ModelKeys],
	// and wins over it.
	Env map[string]string
	// CleanEnv has shells inherit a minimal environment, without the user's secrets. It is implied
	// by Sandbox.
	CleanEnv bool
	// Keys names the variables of [ModelKeys] that shells inherit, unless CleanEnv or Sandbox is
	// set. Other names are an error.
	Keys []string
	// Sandbox runs shells in a bubblewrap sandbox. Where there can be none, [New] returns an error
	// that is [ErrSandbox].
	Sandbox bool
	// Network lets sandboxed shells use the network.
	Network bool
	// Timeout is how long a call waits for its command where it does not say, default
	// [DefaultTimeout].
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

// ErrSandbox is wrapped by the error of [New] if the system cannot make a sandbox: bubblewrap is
// missing or lacks permissions.
var ErrSandbox = errors.New("there is no sandbox here")

// New returns a server without shells. It fails if Dir is not a folder, a program is missing,
// Sandbox is set and the system cannot make one, or the system is not Unix.
func New(opts ...Options) (*Server, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if !supported {
		return nil, fmt.Errorf("shell: there is no POSIX shell on this system, the server needs a Unix such as Linux or macOS: %w", errors.ErrUnsupported)
	}
	if err := o.setDefaults(); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	program, err := o.resolveProgram()
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

// setDefaults puts the defaults in place.
func (o *Options) setDefaults() (err error) {
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

// Close ends all shells with everything that runs in them, and all subscriptions. It waits for
// that, at most a few seconds. Calls that wait for a command return; new ones fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	all := maps.Clone(s.shells)
	s.mu.Unlock()
	for _, sh := range all {
		s.tasks.Go(func() { sh.endShell("the server was closed") })
	}
	s.tasks.Wait()
	return s.Server.Close()
}

var annotations = &mcp.ToolAnnotations{ReadOnlyHint: new(false), DestructiveHint: new(true), IdempotentHint: new(false), OpenWorldHint: new(true)}
