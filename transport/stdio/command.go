package stdio

import (
	"io"
	"time"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/mcp"
)

// Command describes a server to start as a child process. Every field except Path may be zero. A
// Command is a plain value: it may be copied and started any number of times.
type Command struct {
	// Path is a program or a script. A bare name is looked up in PATH, then in the PATH of the
	// user's login shell, because a desktop application does not have it (the shell has 5 s to
	// answer and is asked at most every five minutes; not on Windows), and then in the folders of
	// common installers. If it is not found in PATH, its folder is added to the PATH of the child,
	// because npx, for example, needs node beside it. A path with a separator is relative to Dir.
	//
	// An executable script that begins with "#!" runs directly, except on Windows. Other scripts
	// are run by the program that their extension names: node for .js .mjs .cjs .ts .mts .cts
	// (TypeScript needs 22.18, 23.6 or newer), python3 for .py (python on Windows), ruby for .rb,
	// php for .php, sh for .sh. A .jar always runs with java -jar. A bare script name that is not
	// found in PATH is looked up in Dir.
	Path string
	Args []string

	// Env is added to the environment of the child and overrides it. The child inherits the whole
	// environment of this process, because servers depend on variables that are rarely listed:
	// proxies, certificates, XDG folders.
	Env map[string]string
	// CleanEnv makes the child inherit only PATH, HOME, USER, LOGNAME, SHELL, TERM, TMPDIR, the
	// locale and time zone, or their counterparts on Windows. No secret of the user reaches the
	// child.
	CleanEnv bool
	// Dir is the working directory of the child; empty means this process's directory.
	Dir string

	// Stderr receives a copy of the child's stderr, from one goroutine; nil for no copy. If Write
	// blocks, the child does not: up to 256 KiB are queued, further bytes are omitted, and a line
	// in brackets tells how many.
	Stderr io.Writer

	// Grace is how long closing the connection waits for the child to exit after it has closed
	// stdin. 0 means 2 s, negative means no time.
	Grace time.Duration
	// KillAfter is the time between SIGTERM (CTRL_BREAK on Windows) and SIGKILL. 0 means 2 s,
	// negative means no time.
	KillAfter time.Duration

	// KeepDetached lets processes live on that have left the child's process group, such as a
	// daemon that other programs use too. By default they end with the tree; see [Child].
	KeepDetached bool
}

// Child is the process of a server that [Command.Dial] started. All methods may be called
// concurrently, also after the process has exited.
//
// The process and everything that it starts form one tree, which ends as a whole: when the
// connection is closed, when the process itself exits, or when this process dies, even by SIGKILL.
// On POSIX, the tree is a session with a process group of its own: Ctrl-C in the terminal does not
// reach it, and it has no terminal to ask for a password on. On Windows it is a Job Object; that
// code has been compiled but never run.
//
// On Linux, processes that have created a session or process group of their own (setsid, a daemon)
// end too, after the group, unless [Command].KeepDetached is set. They are found by a random mark
// that each child gets in the environment variable DOWEL_TREE. A process escapes if it leaves the
// group and clears its environment, overwrites it, or runs as another user. On other systems, every
// process that leaves the group is kept.
type Child interface {
	// PID returns the process id. On POSIX it is also the id of the process group and session.
	PID() int
	// StderrTail returns the last lines of stderr as valid UTF-8, without the frames of stack
	// traces, control characters and terminal escape sequences. At most 64 KiB are kept.
	StderrTail(lines int) string
	// ExitError returns nil while the process runs, and its [*ExitError] afterwards, even if the
	// exit status is 0.
	ExitError() error
}

// ChildOf returns the process of a transport that [Command.Dial] returned, and nil for any other
// transport.
func ChildOf(t mcp.Transport) Child {
	if p, ok := t.(*childTransport); ok {
		return p.child
	}
	return nil
}

// ExitError is the exit of a child, as an error: it is one even if the exit status is 0, because
// the server is gone. Its fields are
//
//   - Command, the Path of the [Command];
//   - State, the [*os.ProcessState], or nil if the exit status is unknown;
//   - Stderr, the last lines of stderr without the frames of stack traces, at most 10 lines and 2
//     KiB;
//   - Closed, which reports whether the exit followed the end of the connection.
//
// The method ExitCode returns the exit status, or -1 if a signal ended the process.
type ExitError = process.ExitError

// NotFoundError is the error for a program that was not found. It wraps [exec.ErrNotFound]. Its
// fields are Name, Searched with descriptions of the places, and Hint, a sentence that tells the
// user how to install the program.
type NotFoundError = process.NotFoundError
