// Package doctor walks the steps from a server's definition to a working connection, and says which one fails and what
// to do about it. [Examine] takes the steps one after the other; [Explain] makes a diagnosis of the error of a start that
// has failed already.
package doctor

import (
	"context"
	"iter"
	"time"

	"github.com/dowel-mcp/dowel/client"
)

// Server is a server to look at. Target is required; the zero value of every other field is fine.
type Server struct {
	// Name is how the user knows the server.
	Name string
	// Target is what [client.Dial] takes. Commands (stdio.Command, []string) and URLs (string, streamable.URL, sse.URL)
	// are looked into; anything else is dialed and no more.
	Target any
	// Options are those that the server is dialed with. What tells others of the connection (OnState, OnLog,
	// Notifications, Logger) is not called, and nothing is remembered in its Verdicts.
	Options client.Options
	// EnvFile is a file whose variables the definition takes, already in the command's Env; empty for none.
	EnvFile string
	// Mask hides secrets in whatever is said. What looks like a secret is hidden without it too: values of variables,
	// arguments, query parameters and header fields that are named so, and passwords in URLs.
	Mask func(string) string

	// Stderr and StrayStdout are the last lines that the server wrote, for Explain: what the caller has kept of the start
	// that failed. Without Stderr, what the error holds of it is taken.
	Stderr, StrayStdout []string
}

// Status is how a step went.
type Status string

// The ways in which a step goes.
const (
	OK      Status = "ok"
	Warning Status = "warning" // it works, but will give trouble
	Failed  Status = "failed"  // nothing comes after it
	Skipped Status = "skipped" // there is nothing to look at; Detail says why
)

// Step is a step on the way to a server, without secrets.
//
// The steps of a command are: definition, folder, environment, command, start, first second, handshake, stdout, server,
// lists, end. Those of a URL: definition, proxy, name, connect, TLS, HTTP, handshake, server, lists, end. Any other target
// has the last four and the definition. A step that has no meaning for a target is left out.
type Step struct {
	Name   string
	Status Status
	// Detail says what was found, in a few words.
	Detail string
	// Took is how long the step took.
	Took time.Duration
	// Advice is one sentence that says what to do. Every failed step has it, and most warnings.
	Advice string
	// Err and Diagnosis are those of a failed step. The text of Err is without secrets, what it wraps may hold them.
	Err       error
	Diagnosis *Diagnosis
}

// The names of the steps.
const (
	stepDefinition  = "definition"
	stepFolder      = "folder"
	stepEnvironment = "environment"
	stepCommand     = "command"
	stepStart       = "start"
	stepFirst       = "first second"
	stepStdout      = "stdout"
	stepProxy       = "proxy"
	stepName        = "name"
	stepConnect     = "connect"
	stepTLS         = "TLS"
	stepHTTP        = "HTTP"
	stepHandshake   = "handshake"
	stepServer      = "server"
	stepLists       = "lists"
	stepEnd         = "end"
)

// Examine dials the server as the options say, yields each step as soon as it has been taken, and ends the connection with
// all that was started. It ends behind the first step that fails. ctx and the limits of the options bound it; a list may
// take half a minute where Total says nothing.
func Examine(ctx context.Context, p Server) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		w := newWalk(ctx, p, yield)
		defer func() { w.network.close() }()
		w.examine()
	}
}

func (w *walk) examine() {
	if !w.definition() {
		return
	}
	switch {
	case w.command != nil:
		if w.folder() && w.environment() && w.program() {
			w.run()
		}
	case w.url != nil:
		if w.proxy() {
			w.reach()
		}
	default:
		w.talk()
	}
}
