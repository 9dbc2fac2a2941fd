package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/modelkeys"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/stacktrace"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// complaint matches the output of a program that cannot start. In summary and advice, $1 is the
// first group of the pattern. The first match in the table wins.
type complaint struct {
	pattern         func() *regexp.Regexp
	summary, advice string
}

var complaints = []complaint{
	// Node.js and npm.
	{lazyregexp.New(`Cannot find (?:module|package) '(\.{0,2}/[^']+|[A-Za-z]:[^']+)'`), "the file $1 does not exist", "Build the server, or correct the path $1."},
	{lazyregexp.New(`Cannot find (?:module|package) '([^']+)'`), "the Node.js module $1 is missing", "Run npm install in the server's folder, which lacks the module $1."},
	{lazyregexp.New(`(?i)npm (?:ERR!|error) 404 +'?([^' ]+?)'? is not in (?:this|the npm) registry`), "npm does not know the package $1", "Correct the package's name $1 in the arguments."},
	{lazyregexp.New(`(?i)npm (?:ERR!|error)[^\n]*\bE?404\b`), "npm does not know the package", "Correct the package's name in the arguments."},
	{lazyregexp.New(`(?i)npm (?:ERR!|error) code ETARGET|No matching version found`), "npm does not have that version of the package", "Correct the package's version in the arguments."},
	{lazyregexp.New(`(?i)npm (?:ERR!|error) could not determine executable`), "the package holds no program", "Name a package that holds a program, or its program with npx -p PACKAGE PROGRAM."},
	{lazyregexp.New(`(?i)npm (?:ERR!|error) code (ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH)`), "npm cannot reach its registry ($1)", "Check the network and the proxy that npm uses."},
	{lazyregexp.New(`(?i)npm (?:ERR!|error) code (?:EACCES|EPERM)`), "npm may not write to its folders", "Change the owner of the folder that npm names, such as ~/.npm: it belongs to another user."},
	{lazyregexp.New(`ERR_REQUIRE_ESM|Unsupported engine|EBADENGINE|does not provide an export named|Unexpected token '(?:\?|\.)`), "the server needs another version of Node.js", "Update Node.js to the version that the server asks for."},
	{lazyregexp.New(`JavaScript heap out of memory`), "the server ran out of memory", "Give the server more memory with NODE_OPTIONS=--max-old-space-size=4096 in its environment."},
	// Python and uv.
	{lazyregexp.New(`(?:ModuleNotFoundError: |: )No module named '?([\w.]+)`), "the Python module $1 is missing", "Install $1 for the Python that runs the server, or start the server with uvx."},
	{lazyregexp.New(`can't open file '([^']+)'`), "the file $1 does not exist", "Correct the path $1 in the arguments."},
	{lazyregexp.New(`Because ([\w.@/-]+) was not found in the package registry`), "the Python package $1 does not exist", "Correct the package's name $1 in the arguments."},
	{lazyregexp.New(`No solution found when resolving`), "uv finds no compatible versions", "Correct the package's name and version in the arguments, or the version of Python."},
	{lazyregexp.New(`An executable named [\x60']?([\w.-]+)[\x60']? is not provided by package`), "the package holds no program $1", "Name the program with uvx --from PACKAGE PROGRAM."},
	// Containers.
	{lazyregexp.New(`(?i)permission denied while trying to connect to the Docker`), "you have no permission to use Docker", "Add yourself to the group docker and log in again."},
	{lazyregexp.New(`(?i)Cannot connect to the Docker daemon|docker daemon is (?:not running|running\?)|dockerDesktopLinuxEngine|Cannot connect to Podman`), "the Docker daemon does not run", "Start Docker, and then the server again."},
	{lazyregexp.New(`(?i)pull access denied|manifest unknown|manifest for \S+ not found|repository does not exist`), "the image cannot be pulled", "Correct the name of the image, or log in to its registry."},
	{lazyregexp.New(`(?i)the container name "?/?([\w.-]+)"? is already in use`), "a container named $1 exists already", "Remove the container with docker rm -f $1, and add --rm to the arguments."},
	{lazyregexp.New(`(?i)the input device is not a TTY`), "the container asks for a terminal", "Remove -t from docker's arguments and keep -i."},
	// The system.
	{lazyregexp.New(`env: ['‘"]?([\w.-]+)['’"]?: No such file or directory`), "$1 was not found", "Install $1, or add its folder to PATH in the server's environment."},
	{lazyregexp.New(`(?m)(?:^|: )([\w./-]+): (?:command )?not found`), "$1 was not found", "Install $1, or add its folder to PATH in the server's environment."},
	{lazyregexp.New(`GLIBC_[\d.]+' not found|GLIBCXX_[\d.]+' not found|error while loading shared libraries`), "the program does not fit this system's libraries", "Get a build of the server for this system, or update the system."},
	{lazyregexp.New(`(?i)Unable to access jarfile (\S+)`), "the file $1 does not exist", "Correct the path $1 in the arguments."},
	{lazyregexp.New(`UnsupportedClassVersionError`), "the server needs a newer Java", "Update the Java runtime."},
	{lazyregexp.New(`(?is)(?:EADDRINUSE|address already in use|port is already allocated)[^\n]{0,80}?:(\d{2,5})\b`), "port $1 is in use", "Stop the program that listens on port $1, or give the server another port."},
	{lazyregexp.New(`(?i):(\d{2,5})\b[^\n]*address already in use`), "port $1 is in use", "Stop the program that listens on port $1, or give the server another port."},
	{lazyregexp.New(`(?i)EADDRINUSE|address already in use`), "the port of the server is in use", "Stop the program that listens on that port, or give the server another one."},
	{lazyregexp.New(`(?i)ENOSPC|no space left on device`), "the disk is full", "Make room on the disk."},
	{lazyregexp.New(`EACCES: permission denied, \w+ '([^']+)'|PermissionError: \[Errno 13\][^\n]*'([^']+)'`), "the server may not use $1$2", "Let the server read and write $1$2, or name another path."},
	{lazyregexp.New(`ENOENT: no such file or directory, \w+ '([^']+)'|FileNotFoundError: \[Errno 2\][^\n]*'([^']+)'`), "$1$2 does not exist", "Correct the path $1$2 in the arguments or the environment, or create it."},
	{lazyregexp.New(`(?i)self[- ]signed certificate|unable to get local issuer|CERTIFICATE_VERIFY_FAILED`), "the server does not trust a certificate", "Name your authority's certificate in NODE_EXTRA_CA_CERTS or SSL_CERT_FILE in the server's environment."},
	{lazyregexp.New(`(?i)connect ECONNREFUSED (\S+?)\.?(?:\s|$)`), "the server cannot reach $1", "Start the service that the server uses at $1, or correct its address."},
	{lazyregexp.New(`(?i)\b401\b[^\n]*unauthori[sz]ed|invalid (?:api[ _-]?key|token|credentials)|bad credentials|authentication failed`), "the server's credentials are refused", "Renew the key or token in the server's environment or arguments."},
	// Arguments.
	{lazyregexp.New(`(?im)unknown (?:option|flag|argument|command)s?:? ['"\x60]?([^\s'"\x60]+)|unrecognized arguments?: (\S+)|flag provided but not defined: (\S+)|unexpected argument '([^']+)'`), "the program does not know the argument $1$2$3$4", "Correct the argument $1$2$3$4."},
	{lazyregexp.New(`(?im)^\s*usage:|required (?:option|argument)|the following arguments are required`), "the program asks for other arguments", "Complete the arguments as the program's usage says."},
}

// panicMessage matches errors that only the author of a server can correct.
var panicMessage = lazyregexp.New(`^(?:panic|fatal error): `)

// missingVariablePatterns match complaints about a variable that is not set. One of the groups is
// its name.
var missingVariablePatterns = []func() *regexp.Regexp{
	lazyregexp.New(`\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b['"\x60]?[^\n]{0,40}?(?i:\b(?:is|are|was|not|must be|required|missing|undefined|unset|has to be|needs to be)\b)`),
	lazyregexp.New(`(?i:missing|required|requires|set|provide|need|expected|specify|no)\b[^\n]{0,60}?\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`),
	lazyregexp.New(`KeyError: '([A-Z][A-Z0-9_]+)'`),
}

// httpServerLine matches the lines that a server prints when it serves HTTP.
var httpServerLine = lazyregexp.New(`(?i)(?:listening|running|serving|started|available)\b[^\n]*(?:https?://|\bport\b|:\d{4,5}\b)`)

// findProcessExit explains the end of the process.
func findProcessExit(e *evidence) (finding, bool) {
	exit := e.exitError()
	if exit == nil {
		return finding{}, false
	}
	step, how := stepHandshake, "its exit status is unknown"
	if e.diedEarly {
		step = stepFirst
	}
	if exit.State != nil {
		how = exit.State.String()
	}
	f, ok := e.matchComplaint()
	if !ok {
		f = e.adviseOnExit(exit)
	}
	f.step, f.summary = step, fmt.Sprintf("the process ended (%s): %s", how, f.summary)
	return f, true
}

// matchComplaint finds a cause in the server's output.
func (e *evidence) matchComplaint() (finding, bool) {
	words := strings.Join(append(e.lastStderr(), e.stdoutLines...), "\n")
	for _, name := range modelkeys.Names {
		if strings.Contains(words, name) && !e.isSet(name) {
			e.unsetVariable = name
			return finding{stepHandshake, name + " is not set; servers do not inherit the keys of models",
				fmt.Sprintf(`If the server may have this key, add "env": {"%[1]s": "${%[1]s}"} to its entry.`, name)}, true
		}
	}
	if f, ok := e.findBrokenNpx(words); ok {
		return f, true
	}
	for _, c := range complaints {
		if m := c.pattern().FindStringSubmatchIndex(words); m != nil {
			return finding{stepHandshake, expandTemplate(c, c.summary, words, m), expandTemplate(c, c.advice, words, m)}, true
		}
	}
	if name := e.findMissingVariable(words); name != "" {
		e.unsetVariable = name
		return finding{stepHandshake, name + " is not set", "Give " + name + " a value in the server's environment."}, true
	}
	if message := e.crashMessage(); panicMessage().MatchString(message) {
		return finding{stepHandshake, "the server crashed: " + message, "Update the server, or report this error to its author."}, true
	} else if message != "" {
		return finding{stepHandshake, message, "Correct the cause that this error names, or report it to the server's author."}, true
	}
	if len(e.stdoutLines) > 0 {
		return e.describeStdout(), true
	}
	return finding{}, false
}

// crashMessage returns the uncaught error on the server's stderr, or "".
func (e *evidence) crashMessage() string {
	if exit := e.exitError(); exit != nil {
		return process.CrashMessage(exit)
	}
	return stacktrace.Message(strings.Join(e.stderrLines, "\n"))
}

var groupReference = lazyregexp.New(`\$(\d)`)

// expandTemplate replaces $1 to $9 in template by the groups of match.
func expandTemplate(c complaint, template, words string, match []int) string {
	template = groupReference().ReplaceAllString(template, "$${$1}")
	return string(c.pattern().ExpandString(nil, template, words, match))
}

// findMissingVariable returns a variable that the server asks for and that has no value.
func (e *evidence) findMissingVariable(words string) string {
	for _, pattern := range missingVariablePatterns {
		for _, m := range pattern().FindAllStringSubmatch(words, -1) {
			if !e.isSet(m[1]) {
				return m[1]
			}
		}
	}
	return ""
}

// isSet reports whether a variable has a value in the server's environment.
func (e *evidence) isSet(name string) bool {
	value, own := e.command.Env[name]
	if !own && !e.command.CleanEnv {
		value = os.Getenv(name)
	}
	return value != "" && !placeholder().MatchString(value)
}

// adviseOnExit explains an exit if the server's output does not.
func (e *evidence) adviseOnExit(exit *stdio.ExitError) finding {
	f := finding{summary: e.pickTellingLine(), advice: "Run the command in a terminal to see its output."}
	switch code := exit.ExitCode(); {
	case exit.State != nil && strings.Contains(exit.State.String(), "killed"):
		f.advice = "Find out what kills the process: usually the system does when memory runs out."
	case exit.State != nil && code < 0:
		f.advice = "Update the server, or report the crash to its author."
	case code == 127:
		f.advice = "Check that all programs that the command starts are installed and on its PATH."
	case code == 126:
		f.advice = "Make the program that the command starts executable."
	case code == 0 && f.summary == saidNothing:
		f.advice = "Check the arguments: a server in stdio mode runs until its standard input ends."
	case f.summary != saidNothing:
		f.advice = "Fix the problem that the last lines of its stderr describe, and start it again."
	}
	return f
}

var errorLine = lazyregexp.New(`(?i)\berror\b|error:|fatal|exception|failed|cannot|denied`)

// usageHint matches a line that says where to read about the command.
var usageHint = lazyregexp.New(`(?i)^\s*(?:usage\b|for more (?:information|help)\b|(?:see|try|run|use|type)\b.*(?:--help|-h\b|\bhelp\b))`)

const saidNothing = "it said nothing on stderr"

// pickTellingLine returns the stderr line that most likely names the problem.
func (e *evidence) pickTellingLine() string {
	lines := e.lastStderr()
	if len(lines) == 0 {
		return saidNothing
	}
	for _, line := range lines {
		if errorLine().MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	for _, line := range slices.Backward(lines) {
		if !usageHint().MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// downloadingRunner returns the program that downloads a server before starting it, or "" if the
// command is not one.
func downloadingRunner(c *stdio.Command) string {
	base := strings.ToLower(filepath.Base(c.Path))
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".exe"), ".cmd")
	if slices.Contains([]string{"npx", "uvx", "bunx", "pipx", "uv", "docker", "podman", "deno", "go", "pnpm", "yarn", "npm"}, base) {
		return base
	}
	return ""
}
