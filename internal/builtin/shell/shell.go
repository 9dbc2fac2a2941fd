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
// empty. Its stdout and stderr are one stream, in the order of the writes, as on a terminal. The
// stream is not a terminal, so a program that asks for a password fails. Redirections by exec and
// set -e last until the end of the command; under set -e, a failure ends the shell. The rest of the
// state stays for the next command: the working folder, variables, $?, options, traps, functions,
// aliases, and the descriptors 3 to 9 except 7.
//
// The shell reports the end of a command by a mark with a random number, which it writes to a
// descriptor that the command does not have. The server therefore need not wait until the output is
// closed: a background process may keep it open, and what it prints later is part of a later
// result.
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
// killed. On Linux these include processes with a session of their own (setsid, a daemon), unless
// [Options].KeepDetached is set or they clear their environment. On other systems, processes with a
// session of their own are not ended, nor background processes started under set -m.
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
// bubblewrap sandbox. There it can write only to [Options].Dir and to a /tmp of its own, which is
// empty at first. It sees only its own processes, a minimal environment, no sockets in /run, and
// not the user's home folder, unless Dir is or contains that folder. It has a network only with
// [Options].Network. Processes that have left the session end with the sandbox too. All other files
// that the user may read stay readable. The sandbox prevents accidents, and hides secrets in the
// home folder and the environment; it does not stop an attacker.
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

	"github.com/dowel-mcp/dowel/internal/modelkeys"
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

// ModelKeys are the environment variables of this process that shells do not inherit unless
// [Options].Keys names them. They must not be changed.
var ModelKeys = modelkeys.Names

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Dir is the folder in which shells start. It must exist. The default is the working folder of
	// this process.
	Dir string
	// Shell is the program that runs commands: bash, or any POSIX sh. The default is bash or, if
	// bash is neither on PATH nor in /bin, sh.
	Shell string
	// Env holds variables for the shells. They win over inherited variables of the same name.
	Env map[string]string
	// CleanEnv lets shells inherit only a minimal environment, without the user's secrets. Sandbox
	// implies it.
	CleanEnv bool
	// Keys names the variables of [ModelKeys] that shells inherit, unless CleanEnv or Sandbox is
	// set. Other names are an error.
	Keys []string
	// Sandbox runs shells in a bubblewrap sandbox. If the system cannot make one, [New] returns
	// [ErrSandbox].
	Sandbox bool
	// Network lets sandboxed shells use the network.
	Network bool
	// Timeout is how long a call waits for its command if the call has no timeout of its own. The
	// default is [DefaultTimeout], the maximum [MaxTimeout].
	Timeout time.Duration
	// Idle is the time without a call after which a shell ends. The default is [DefaultIdle]; with
	// a negative value, shells never expire.
	Idle time.Duration
	// KeepDetached lets processes live on that have left the session of their shell, such as
	// daemons.
	KeepDetached bool
	// MaxShells limits the number of open shells. The default is [DefaultMaxShells].
	MaxShells int
	// MaxOutput limits the characters of output in one result. The default is [DefaultMaxOutput].
	MaxOutput int
	// Server holds the options of [server.New].
	Server server.Options
}

// Server is a [server.Server] that owns the shells. Call Close to end them.
type Server struct {
	*server.Server
	opts    Options
	program program

	mu     sync.Mutex
	shells map[string]*shell
	past   []*shell // ended shells, the latest last; at most maxPast
	// opening counts the shells that are being opened. They count against MaxShells.
	opening int
	closed  bool
	tasks   sync.WaitGroup
}

// ErrSandbox is wrapped by the error of [New] if the system cannot make a sandbox: bubblewrap is
// missing or lacks permissions.
var ErrSandbox = errors.New("this system cannot make a sandbox")

// New returns a server without shells. It fails if Dir is not a folder, a program is missing,
// Sandbox is set and the system cannot make one, or the system is not Unix.
func New(opts ...Options) (*Server, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if !supported {
		return nil, fmt.Errorf("shell: this system has no POSIX shell; the server runs on Linux, macOS and other Unix systems. On Windows, run dowel in WSL, or add a server that runs PowerShell commands: %w", errors.ErrUnsupported)
	}
	if err := o.setDefaults(); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	program, err := o.resolveProgram()
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	if o.Server.Instructions == "" {
		o.Server.Instructions = "Runs commands in a shell that keeps its working folder and variables between calls. The first result has the handle of the shell: pass it to every further call."
	}
	s := &Server{Server: server.New("shell", Version, &o.Server), opts: o, program: program, shells: map[string]*shell{}}
	s.addTool()
	return s, nil
}

// setDefaults replaces zero values by their defaults and checks the options.
func (o *Options) setDefaults() (err error) {
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.Idle = orDefault(o.Idle, DefaultIdle)
	o.MaxShells = orDefault(o.MaxShells, DefaultMaxShells)
	o.MaxOutput = orDefault(o.MaxOutput, DefaultMaxOutput)
	if o.Timeout < 0 || o.Timeout > MaxTimeout || o.MaxShells < 0 || o.MaxOutput < 0 {
		return fmt.Errorf("the options timeout, max-shells and max-output must not be negative, and timeout must be at most %v", MaxTimeout)
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
		return fmt.Errorf("the folder of the shells: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the folder of the shells: %s is not a folder", o.Dir)
	}
	for _, key := range o.Keys {
		if !slices.Contains(ModelKeys, key) {
			return fmt.Errorf("the option keys: %q: want %s", key, strings.Join(ModelKeys, " or "))
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

// Close ends all shells, everything that runs in them, and all subscriptions. It returns when they
// have ended, within a few seconds. Calls that wait for a command return; new calls fail.
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
