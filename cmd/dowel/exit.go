package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Exit codes; exitCodes says what they mean.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConnection  = 3
	exitProtocol    = 4
	exitTimeout     = 124
	exitInterrupted = 130

	// Of dowel run, beside the others.
	exitBudget   = 2
	exitApproval = 3
)

const exitCodes = `dowel ends with

    0  all went well; dowel up and dowel serve were told to end
    1  the tool says that it failed, or the result could not be saved
    2  the command line cannot be used: a wrong flag, an unknown server or tool,
       an argument that is missing or does not fit the tool's schema
    3  no connection: the server could not be started or reached, or it went away;
       or no dowel is running that could be asked
    4  a protocol error: the server refused the request with an error,
       or sent what the protocol or the tool's own output schema does not allow
  124  a limit passed: --timeout, --idle-timeout, --connect-timeout, or --max-time of dowel run
  130  interrupted by Ctrl-C; any other signal ends with 128 and its number

dowel run ends with these, and adds two meanings. Its message tells which it is, and with --json the event end does, by its
"reason": what makes a task impossible to begin has no such event.

    0  the model has answered
    1  a failure: the model's provider refuses, or is not reached; or the answer
       was cut off at the bound of its length
    2  the steps of --max-steps are spent; or, before the task begins, the command
       line cannot be used, or there is no model
    3  an approval is needed: a tool was called that --approve does not let run; or,
       before the task begins, a server that was named cannot be reached

That a tool fails is for the model to read, and changes no exit code.

A reader that goes away (dowel tools … | head -1) is no failure.`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodes}
}

// usageError says that the command line cannot be used, and where it says what can.
type usageError struct {
	err error
	see string // empty: the command's --help
}

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{err: fmt.Errorf(format, args...)} }

// seeing adds to a usage error where to look.
func seeing(err error, where string) error {
	var usage usageError
	if errors.As(err, &usage) && usage.see == "" {
		return usageError{usage.err, where}
	}
	return err
}

// connectError says that a server could not be started or reached.
type connectError struct {
	server string
	err    error
}

func (e connectError) Error() string { return "no connection to " + e.server + ": " + e.err.Error() }
func (e connectError) Unwrap() error { return e.err }

// failure is what a tool says of its failure.
type failure struct{ tool, text string }

func (e failure) Error() string { return e.tool + ": " + e.text }

// interruption is the cause of a context that a signal ended. Servers are told its words.
type interruption struct{ signal os.Signal }

func (e *interruption) Error() string { return fmt.Sprintf("the user ended dowel (%v)", e.signal) }

// code is 128 and the number of the signal, as shells have it.
func (e *interruption) code() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitInterrupted
}

// errReaderGone is the cause of a context that ended because nobody reads the output any more.
var errReaderGone = errors.New("nobody reads the output any more")

// exitCode returns the exit code for the error of a command. An error with a method ExitStatus() int chooses its own code; an
// interruption comes before it.
func exitCode(err error) int {
	var (
		interrupted *interruption
		chosen      interface{ ExitStatus() int }
		usage       usageError
		connect     connectError
		failed      failure
		answered    *mcp.Error
		call        *client.CallError
	)
	switch {
	case err == nil, errors.Is(err, errReaderGone):
		return exitOK
	case errors.As(err, &interrupted):
		return interrupted.code()
	case errors.As(err, &chosen):
		return chosen.ExitStatus()
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.As(err, &failed):
		return exitFailed
	case errors.As(err, &connect), errors.Is(err, mcp.ErrConnection), errors.Is(err, control.ErrNotRunning):
		return exitConnection
	case errors.As(err, &answered), errors.As(err, &call):
		return exitProtocol
	}
	return exitFailed
}

// advice tells the user what to do about an error. An error with a method Advice() string brings its own advice. The result is
// empty if the message of the error says enough.
func advice(err error) string {
	var timeout *client.TimeoutError
	var answered *mcp.Error
	var advised interface{ Advice() string }
	switch {
	case errors.As(err, &advised):
		return advised.Advice()
	case errors.As(err, &timeout):
		flag := map[client.TimeoutKind]string{
			client.TimeoutConnect: "--connect-timeout", client.TimeoutIdle: "--idle-timeout", client.TimeoutTotal: "--timeout",
		}[timeout.Kind]
		return "allow more with " + flag + "; --wire shows what was said until then"
	case errors.As(err, &answered) && answered.Code == mcp.CodeMissingCapability:
		return lacking(answered)
	}
	return ""
}

// lacking names the flags that give a server what it asks of its client.
func lacking(e *mcp.Error) string {
	var data struct {
		Required mcp.ClientCapabilities `json:"requiredCapabilities"`
	}
	_ = mcp.Decode(e.Data, &data) // without it there is no advice
	switch {
	case data.Required.Elicitation != nil:
		return "it wants to ask you something: run dowel on a terminal, or answer with --answer key=value"
	case data.Required.Sampling != nil:
		return "it wants to ask a model something: answer with --sample-text TEXT"
	case data.Required.Roots != nil:
		return "it wants to know what it may work on: say so with --root DIR"
	}
	return ""
}
