package doctor

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// evidence holds everything that is known about a failed start.
type evidence struct {
	err    error
	server Server
	mask   *masker

	// The target, by kind.
	command *stdio.Command
	url     *url.URL // nil if the URL is malformed
	address string   // the URL as the user wrote it
	isURL   bool

	// For a command.
	programFile string    // the program's file; empty if unknown
	startedAt   time.Time // when the process was started; zero if unknown
	diedEarly   bool      // the process ended within its first second
	stderrLines []string  // the last lines of stderr
	stdoutLines []string

	unsetVariable string // the variable that the server's output asks for; empty without one

	// For a URL.
	stage            string   // the step that was in progress; empty if unknown
	refusedAddresses []string // addresses that could not be connected to, each with the reason
	proxied          string   // the proxy's host
	authorized       bool     // the requests carried credentials
}

// newEvidence collects the facts that p and err contain. It teaches the masker the secrets of the
// target.
func newEvidence(err error, p Server) evidence {
	e := evidence{err: err, server: p, mask: &masker{custom: p.Mask}, stderrLines: p.Stderr, stdoutLines: p.StrayStdout}
	switch t := p.Target.(type) {
	case stdio.Command:
		e.command = &t
	case []string:
		e.command = &stdio.Command{}
		if len(t) > 0 {
			e.command.Path, e.command.Args = t[0], t[1:]
		}
	case string:
		e.address, e.isURL = t, true
		e.authorized = p.Options.HTTP.Header != nil
	case streamable.URL:
		e.address, e.isURL = t.URL, true
		e.authorized = t.Header != nil
	case sse.URL:
		e.address, e.isURL = t.URL, true
		e.authorized = t.Header != nil
	case websocket.URL:
		e.address, e.isURL = t.URL, true
		e.authorized = t.Header != nil
	}
	if e.command != nil {
		e.mask.addCommand(e.command)
	}
	if e.isURL {
		if u, err := url.Parse(e.address); err == nil {
			e.url = u
			e.mask.addURL(u)
		}
	}
	return e
}

// describeTarget describes the target without secrets.
func (e *evidence) describeTarget() string {
	switch {
	case e.command != nil:
		return "command: " + strings.Join(e.commandLine(), " ")
	case e.url != nil:
		return "URL: " + shownURL(e.url)
	}
	if d, ok := e.server.Target.(transport.Dialer); ok {
		return d.String()
	}
	return fmt.Sprintf("a %T", e.server.Target)
}

// commandLine returns the command and its arguments. The command is the program's file if that is
// known.
func (e *evidence) commandLine() []string {
	words := append([]string{e.command.Path}, e.command.Args...)
	if e.programFile != "" {
		words[0] = e.programFile
	}
	return e.mask.maskLines(words)
}

// exitError returns how the process ended, or nil if it still runs or its end is unknown.
func (e *evidence) exitError() *stdio.ExitError {
	if exit, ok := errors.AsType[*stdio.ExitError](e.err); ok {
		return exit
	}
	return nil
}

// lastStderr returns the last lines of stderr. It prefers the lines of the process that ended, then
// the lines that the caller kept, then the lines in the error's text.
func (e *evidence) lastStderr() []string {
	if exit := e.exitError(); exit != nil && exit.Stderr != "" {
		if !strings.HasPrefix(exit.Stderr, "…") {
			return lastLines(exit.Stderr)
		}
		if len(e.stderrLines) == 0 {
			return lastLines(dropFirstLine(exit.Stderr))
		}
	}
	if len(e.stderrLines) > 0 || e.err == nil {
		return lastLines(strings.Join(e.stderrLines, "\n"))
	}
	const mark = "last words on stderr:\n\t"
	_, words, _ := strings.Cut(e.err.Error(), mark)
	return lastLines(strings.ReplaceAll(words, "\n\t", "\n"))
}

// Diagnosis explains why a server could not be reached. It holds no secrets.
type Diagnosis struct {
	// Summary describes the problem in one line.
	Summary string
	// Advice is one sentence that tells the user what to do.
	Advice string
	// Step is the name of the failed step; see [Step].
	Step string
	// Awaits names the change without which another attempt would fail in the same way, such as
	// "the program npx, or a change of its entry". It is empty if another attempt may succeed.
	Awaits string

	// Command and the fields below are set for commands only. Command is the program, as a file if
	// that was found, and its arguments. EnvNames are the variables that the definition sets. Exit
	// says how the process ended, such as "exit status 1", and is empty if it did not end. Stderr
	// and StrayStdout are the last lines, at most 10 each, that the process wrote to stderr, and to
	// stdout outside messages.
	Command     []string
	EnvNames    []string
	Exit        string
	Stderr      []string
	StrayStdout []string
}

// Explain diagnoses an error of [client.Dial] or the error of a lost connection. err must not be
// nil. Explain starts no process and uses no network; it only looks for the command's program in
// folders. It treats the end of a process as a failure of the handshake.
func Explain(err error, p Server) Diagnosis {
	e := newEvidence(err, p)
	if e.command != nil {
		e.programFile = lookUpProgram(e.command)
	}
	return e.buildDiagnosis()
}

// buildDiagnosis finds the cause and describes it.
func (e *evidence) buildDiagnosis() Diagnosis {
	f := e.findCause()
	d := Diagnosis{Step: f.step, Summary: shortenText(e.mask.maskText(oneLine(f.summary)), lineRunes), Advice: e.mask.maskText(oneLine(f.advice))}
	d.Awaits = e.mask.maskText(oneLine(e.findAwaited(f)))
	if e.command == nil {
		return d
	}
	d.Command = e.commandLine()
	d.EnvNames = slices.Sorted(maps.Keys(e.command.Env))
	d.Stderr = e.mask.maskLines(e.lastStderr())
	d.StrayStdout = e.mask.maskLines(lastLines(strings.Join(e.stdoutLines, "\n")))
	if exit := e.exitError(); exit != nil {
		d.Exit = "exit status unknown"
		if exit.State != nil {
			d.Exit = exit.State.String()
		}
	}
	return d
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
