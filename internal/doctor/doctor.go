// Package doctor finds out why an MCP server does not work, and what the user can do about it.
//
// A server can fail in many places: its definition, its working folder, the program, the network,
// TLS, HTTP, the MCP handshake. [Examine] walks these places in order as [Step] values, each with a
// status and, if something is wrong, one sentence of advice. [Explain] starts nothing: it turns the
// error of a start that has already failed into a [Diagnosis]. Both hide secrets in everything that
// they return.
//
//	for step := range doctor.Examine(ctx, doctor.Server{Name: "github", Target: target}) {
//		fmt.Println(step.Status, step.Name, step.Detail, step.Advice)
//	}
package doctor

import (
	"context"
	"iter"
	"time"

	"github.com/dowel-mcp/dowel/client"
)

// Server is a server to examine. Target is required. The other fields may be zero.
type Server struct {
	// Name is the user's name for the server.
	Name string
	// Target is the target for [client.Dial]. Commands (stdio.Command, []string) and URLs (string,
	// streamable.URL, sse.URL) get steps of their own. Any other target is only dialed.
	Target any
	// Options are the options for the dial. Its callbacks (OnState, OnLog, OnNotification), Logger
	// and Verdicts are not used, so the examination stays invisible to their owner.
	Options client.Options
	// EnvFile is the file from which the definition took variables, or "" if it has none. The
	// variables must already be in the command's Env.
	EnvFile string
	// Mask hides the caller's secrets in all texts. nil hides only values that look like secrets:
	// variables, arguments, query parameters and header fields with such names, and passwords in
	// URLs.
	Mask func(string) string

	// Stderr and StrayStdout are the last lines that the server wrote before the start failed. Only
	// Explain uses them. If Stderr is empty, Explain takes the lines that the error holds.
	Stderr, StrayStdout []string
}

// Status is the outcome of a step.
type Status string

// The outcomes of a step.
const (
	OK      Status = "ok"
	Warning Status = "warning" // the server works, but this will cause trouble
	Failed  Status = "failed"  // the last step
	Skipped Status = "skipped" // the step does not apply; Detail says why
)

// Step is one step of an examination. Its texts hold no secrets.
//
// The steps of a command are definition, folder, environment, command, start, first second,
// handshake, stdout, server, lists and end. The steps of a URL are definition, proxy, name,
// connect, TLS, HTTP, login, handshake, server, lists and end. The steps of any other target are
// definition, handshake, server, lists and end. Steps that do not apply are left out.
type Step struct {
	Name   string
	Status Status
	// Detail describes the result in a few words.
	Detail string
	// Took is the duration of the step.
	Took time.Duration
	// Advice is one sentence that tells the user what to do. Every failed step and most warnings
	// have it.
	Advice string
	// Err and Diagnosis are set for a failed step only. The text of Err holds no secrets, but the
	// errors that it wraps may.
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
	stepLogin       = "login"
	stepHandshake   = "handshake"
	stepServer      = "server"
	stepLists       = "lists"
	stepEnd         = "end"
)

// Examine dials the server, yields each step as soon as it is done, and closes the connection and
// ends the process that it started. It stops after the first failed step. ctx and the limits in the
// options bound it. If Options.Total is zero, each list may take 30 seconds.
func Examine(ctx context.Context, p Server) iter.Seq[Step] {
	return examine(ctx, p, firstSecond)
}

// examine is Examine with another length of the first second.
func examine(ctx context.Context, p Server, startWatch time.Duration) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		w := newExamination(ctx, p, yield)
		w.startWatch = startWatch
		defer func() { w.network.closeConns() }()
		w.examineTarget()
	}
}

// examineTarget runs the steps for the kind of target.
func (w *examination) examineTarget() {
	if !w.checkDefinition() {
		return
	}
	switch {
	case w.command != nil:
		if w.checkFolder() && w.checkEnvironment() && w.locateProgram() {
			w.examineCommand()
		}
	case w.url != nil:
		if w.checkProxy() {
			w.examineURL()
		}
	default:
		w.examineOther()
	}
}
