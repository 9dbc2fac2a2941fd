package process

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/npxcache"
)

// rollbackTime is how long a runner that is ended during an install may take to undo it.
const rollbackTime = 10 * time.Second

// Install describes a package runner that has not started the server yet.
type Install struct {
	Runner   string // such as npx
	Activity string // its current work, such as "the postinstall script of puppeteer"; "" if unknown
	// IsGuess: this system does not show whether the server's own process runs already.
	IsGuess bool
}

// installState is what a child knows of its package runner.
type installState struct {
	line      []string    // of the runner, from the command; nil if the command starts none
	isOver    atomic.Bool // the server's own process has been seen
	isPatient atomic.Bool // the watcher knows that the tree is installing

	mu       sync.Mutex
	serving  string    // the id of the process that seems to be the server's own; "" for none
	servesAt time.Time // when it was first seen
}

// confirmTime is how long a process must live to count as the server's own. The scripts with which
// version managers replace npx start short-lived helpers on the same stdin.
const confirmTime = 100 * time.Millisecond

// confirmServing reports whether the process with the given id has been seen for confirmTime.
func (s *installState) confirmServing(pid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving != pid {
		s.serving, s.servesAt = pid, time.Now()
	}
	return pid != "" && time.Since(s.servesAt) >= confirmTime
}

// Installing reports whether a package runner is at work that has not started the server's own
// process yet. On Linux it looks at the tree: the server's own process reads the same stdin, below
// a runner. On other systems a runner counts as installing until MarkStarted.
func (c *Child) Installing() (Install, bool) {
	if c.install.isOver.Load() || isClosed(c.tree.exited) {
		return Install{}, false
	}
	found, serving := c.tree.findInstall(c.install.line)
	installs := found.Runner != ""
	if pulls[found.Runner] != nil {
		installs = pulls[found.Runner].isPending(c.stderr.snapshot())
		found.IsGuess = true
	} else if c.install.confirmServing(serving) {
		c.MarkStarted()
		return Install{}, false
	}
	c.setPatience(installs)
	return found, installs
}

// WasInstalling reports whether a package runner was at work at the last look, and has not been
// seen to start the server's own process since.
func (c *Child) WasInstalling() bool { return c.install.isPatient.Load() }

// MarkStarted records that the server's own process runs.
func (c *Child) MarkStarted() {
	c.install.isOver.Store(true)
	c.setPatience(false)
}

// setPatience tells the watcher whether the tree gets rollbackTime if this process dies.
func (c *Child) setPatience(installs bool) {
	if c.install.isPatient.Swap(installs) != installs {
		c.tree.setPatience(installs)
	}
}

// mendCache removes the folder of an npx that was ended, if the install in it is incomplete.
func (c *Child) mendCache() {
	name, line := findRunner(c.install.line)
	if name != "npx" && name != "npm" {
		return
	}
	home := lookupEnv(c.env, "HOME")
	if home == "" {
		home, _ = os.UserHomeDir() // without one, the default folder is not found
	}
	removed, err := npxcache.RemoveIncomplete(line, func(key string) string { return lookupEnv(c.env, key) }, home)
	switch {
	case err != nil:
		fmt.Fprintf(c.stderr, "\n[the incomplete install of %s cannot be removed: %v]\n", name, err) // kept in memory: cannot fail
	case removed:
		fmt.Fprintf(c.stderr, "\n[the incomplete install of %s has been removed]\n", name) // likewise
	}
}

// pipeLink returns the link by which /proc names a pipe, or "".
func pipeLink(pipe *os.File) (link string) {
	raw, err := pipe.SyscallConn() // unlike Fd, it leaves the pipe non-blocking
	if err != nil {
		return ""
	}
	_ = raw.Control(func(fd uintptr) { link, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) }) // "" on systems without /proc
	return link
}

// pullLog recognises the output of a runner that fetches within its own process, or in a daemon.
type pullLog struct{ begin, end func() *regexp.Regexp }

var (
	dockerLog = &pullLog{
		lazyregexp.New(`Unable to find image|Pulling from |Trying to pull`),
		lazyregexp.New(`Status: (Downloaded|Image)|Writing manifest to image destination`),
	}
	denoLog = &pullLog{begin: lazyregexp.New(`^(\x1b\[[0-9;]*m)*(Download|Initialize|Install)(\x1b\[[0-9;]*m)* \S+`)}
	pulls   = map[string]*pullLog{"docker": dockerLog, "podman": dockerLog, "nerdctl": dockerLog, "deno": denoLog}
)

// isPending reports whether the log says that a fetch has begun and not that it has ended. Deno
// says only that one begins: it is over when it prints another line.
func (p *pullLog) isPending(log []byte) bool {
	if p == denoLog {
		lines := bytes.Split(bytes.TrimRight(log, "\r\n"), []byte("\n"))
		return p.begin().Match(lines[len(lines)-1])
	}
	begins := p.begin().FindAllIndex(log, -1)
	return begins != nil && !p.end().Match(log[begins[len(begins)-1][1]:])
}

// treeLook is one look at the processes of a tree.
type treeLook struct {
	stdin    string // the link of the pipe that the server reads
	runner   string // the first that was found
	serving  string // the id of the server's own process, found below a runner; "" for none
	activity string
}

// noteProcess takes a process into account. belowRunner says that one of its ancestors is a runner.
// It reports whether the process itself is one.
func (l *treeLook) noteProcess(p processFacts, belowRunner bool) bool {
	name, _ := findRunner(p.argv)
	switch {
	case name != "":
		if l.runner == "" {
			l.runner = name
		}
		return true
	case !belowRunner:
		return false
	case p.stdin == l.stdin && !p.isScript():
		l.serving = p.pid
	case p.script != "" && p.script != "npx":
		l.activity = "the " + p.script + " script of " + p.pkg
	case l.activity == "" && len(p.argv) > 0:
		l.activity = programBase(p.argv[0])
	}
	return belowRunner
}

// processFacts are what treeLook asks of a process.
type processFacts struct {
	pid         string
	argv        []string
	stdin       string // the link of its stdin
	script, pkg string // npm's lifecycle script that it belongs to, and its package; "" if none
}

// isScript reports whether the process belongs to a script of an install.
func (p processFacts) isScript() bool {
	return slices.Contains([]string{"preinstall", "install", "postinstall", "prepare", "prepublish", "prepack"}, p.script)
}

// splitTitle returns the words of a command line. A process that has set its title has only one.
func splitTitle(cmdline []byte) []string {
	text := strings.TrimRight(string(cmdline), "\x00 ")
	if text == "" {
		return nil
	}
	words := strings.Split(text, "\x00")
	if len(words) == 1 {
		return strings.Fields(text)
	}
	return words
}

// guessInstall takes a runner that the command starts as installing.
func guessInstall(line []string) (Install, string) {
	name, _ := findRunner(line)
	return Install{Runner: name, IsGuess: true}, ""
}
