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
)

// evidence is what is known of a start that failed.
type evidence struct {
	err  error
	p    Patient
	mask *masker

	// The target, by its kind.
	command *stdio.Command
	url     *url.URL // nil where it is malformed too
	address string   // of url, as it is written
	isURL   bool

	// Of a command.
	file    string    // the program; empty where it is not known
	running time.Time // when the process had been started; zero where that is not known
	early   bool      // it ended within its first second
	said    []string  // the last lines of stderr
	stray   []string

	// Of a URL.
	stage      string   // the step that was under way; empty where it is not known
	refused    []string // addresses with the reason
	proxied    string   // the proxy's host
	authorized bool     // credentials were sent
}

func newEvidence(err error, p Patient) evidence {
	e := evidence{err: err, p: p, mask: &masker{own: p.Mask}, said: p.Stderr, stray: p.StrayStdout}
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
	}
	if e.command != nil {
		e.mask.command(e.command)
	}
	if e.isURL {
		if u, err := url.Parse(e.address); err == nil {
			e.url = u
			e.mask.url(u)
		}
	}
	return e
}

// describe names the target, without secrets.
func (e *evidence) describe() string {
	switch {
	case e.command != nil:
		return "command: " + strings.Join(e.commandLine(), " ")
	case e.url != nil:
		return "URL: " + shownURL(e.url)
	}
	if d, ok := e.p.Target.(transport.Dialer); ok {
		return d.String()
	}
	return fmt.Sprintf("a %T", e.p.Target)
}

// commandLine is the command with the program where it was found.
func (e *evidence) commandLine() []string {
	words := append([]string{e.command.Path}, e.command.Args...)
	if e.file != "" {
		words[0] = e.file
	}
	return e.mask.texts(words)
}

// exit is how the process ended; nil where it did not, or that is not known.
func (e *evidence) exit() *stdio.ExitError {
	if exit, ok := errors.AsType[*stdio.ExitError](e.err); ok {
		return exit
	}
	return nil
}

// lastWords are the last lines of stderr: of the process that ended, else what was kept, else what the error's text holds.
func (e *evidence) lastWords() []string {
	if exit := e.exit(); exit != nil && exit.Stderr != "" {
		if !strings.HasPrefix(exit.Stderr, "…") {
			return lastLines(exit.Stderr)
		}
		if len(e.said) == 0 {
			return lastLines(withoutFirst(exit.Stderr))
		}
	}
	if len(e.said) > 0 || e.err == nil {
		return lastLines(strings.Join(e.said, "\n"))
	}
	const mark = "last words on stderr:\n\t"
	_, words, _ := strings.Cut(e.err.Error(), mark)
	return lastLines(strings.ReplaceAll(words, "\n\t", "\n"))
}

// Diagnosis says why a server could not be reached, without secrets.
type Diagnosis struct {
	// Summary says what is wrong, in one line.
	Summary string
	// Advice is one sentence that says what to do.
	Advice string
	// Step is the one that failed: see [Step].
	Step string

	// Of a command: its words, the first being the program's file where that was found; the names of the variables that
	// the definition sets; how the process ended, such as "exit status 1", empty where it did not; and the last lines, at
	// most 10 of each, that it wrote to stderr and, as no messages, to stdout.
	Command     []string
	EnvNames    []string
	Exit        string
	Stderr      []string
	StrayStdout []string
}

// Explain makes a diagnosis of the error that [client.Dial], or the loss of a connection, came to. It starts nothing and
// asks nobody; it looks into folders for the command's program. The end of a process counts as one during the handshake. err
// must not be nil.
func Explain(err error, p Patient) Diagnosis {
	e := newEvidence(err, p)
	if e.command != nil {
		e.file = glance(e.command)
	}
	return e.diagnose()
}

// diagnose finds the cause.
func (e *evidence) diagnose() Diagnosis {
	f := e.cause()
	d := Diagnosis{Step: f.step, Summary: shortened(e.mask.text(oneLine(f.summary)), lineRunes), Advice: e.mask.text(oneLine(f.advice))}
	if e.command == nil {
		return d
	}
	d.Command = e.commandLine()
	d.EnvNames = slices.Sorted(maps.Keys(e.command.Env))
	d.Stderr = e.mask.texts(e.lastWords())
	d.StrayStdout = e.mask.texts(lastLines(strings.Join(e.stray, "\n")))
	if exit := e.exit(); exit != nil {
		d.Exit = "exit status unknown"
		if exit.State != nil {
			d.Exit = exit.State.String()
		}
	}
	return d
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
