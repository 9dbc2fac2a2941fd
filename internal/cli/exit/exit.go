// Package exit holds the exit codes of dowel and the errors that choose them. [Code] classifies the
// error of a command and [Advice] says what the user can do about it. An error of another package
// chooses for itself with a method ExitStatus() int or Advice() string.
package exit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// Exit codes; dowel help exit-codes explains them.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	Connection  = 3
	Protocol    = 4
	Timeout     = 124
	Interrupted = 130

	// Additional meanings for dowel run.
	Budget   = 2
	Approval = 3
)

// UsageError reports a wrong command line. See is the command that shows the relevant help.
type UsageError struct {
	Err error
	See string // "" means the command's own --help
}

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError] with a formatted message.
func Usagef(format string, args ...any) error { return UsageError{Err: fmt.Errorf(format, args...)} }

// WithHelp returns err with where as its help, if err is a usage error without one. It returns
// other errors unchanged.
func WithHelp(err error, where string) error {
	var usage UsageError
	if errors.As(err, &usage) && usage.See == "" {
		return UsageError{usage.Err, where}
	}
	return err
}

// ConnectError reports that a server could not be started or reached. Doctor is the command that
// finds the cause, or "" if the message says enough.
type ConnectError struct {
	Server string
	Err    error
	Doctor string
}

func (e ConnectError) Error() string { return "no connection to " + e.Server + ": " + e.Err.Error() }
func (e ConnectError) Unwrap() error { return e.Err }

// ToolError is the failure that a tool reports in its result.
type ToolError struct{ Tool, Text string }

func (e ToolError) Error() string { return e.Tool + ": " + e.Text }

// Interruption is the cause of a context that a signal cancelled. Its message is sent to servers as
// the reason of the cancellation.
type Interruption struct{ Signal os.Signal }

func (e *Interruption) Error() string { return fmt.Sprintf("the user ended dowel (%v)", e.Signal) }

// ExitCode returns 128 plus the number of the signal, as in shells.
func (e *Interruption) ExitCode() int {
	if number, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return Interrupted
}

// ErrReaderGone is the cause of a context that ended because the reader of stdout closed the pipe.
var ErrReaderGone = errors.New("nobody reads the output any more")

// Code returns the exit code for the error of a command. An error with a method ExitStatus() int
// chooses its own code, except that an [Interruption] takes precedence.
func Code(err error) int {
	var (
		interrupted *Interruption
		chosen      interface{ ExitStatus() int }
		usage       UsageError
		connect     ConnectError
		failed      ToolError
		answered    *mcp.Error
		call        *client.CallError
	)
	switch {
	case err == nil, errors.Is(err, ErrReaderGone):
		return OK
	case errors.As(err, &interrupted):
		return interrupted.ExitCode()
	case errors.As(err, &chosen):
		return chosen.ExitStatus()
	case errors.As(err, &usage):
		return Usage
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.As(err, &failed):
		return Failed
	case errors.As(err, &connect), errors.Is(err, mcp.ErrConnection), errors.Is(err, control.ErrNotRunning):
		return Connection
	case errors.As(err, &answered), errors.As(err, &call):
		return Protocol
	}
	return Failed
}

// Advice returns a sentence that tells the user what to do about an error. An error with a method
// Advice() string brings its own advice. The result is "" if the message of the error says enough.
func Advice(err error) string {
	var timeout *client.TimeoutError
	var answered *mcp.Error
	var login *auth.NeedsLogin
	var advised interface{ Advice() string }
	var connect ConnectError
	switch {
	case errors.As(err, &advised):
		return advised.Advice()
	case errors.As(err, &timeout):
		flag := map[client.TimeoutKind]string{
			client.TimeoutConnect: "--connect-timeout", client.TimeoutIdle: "--idle-timeout", client.TimeoutTotal: "--timeout",
		}[timeout.Kind]
		return "raise the limit with " + flag + "; --wire shows the messages until then"
	case errors.As(err, &login): // without its URL, which may have a secret
		return "log in with dowel login SERVER, or with dowel login --url and the URL"
	case errors.As(err, &answered) && answered.Code == mcp.CodeMissingCapability:
		return missingCapabilityAdvice(answered)
	case errors.As(err, &connect) && connect.Doctor != "" && Code(err) == Connection:
		return connect.Doctor + " finds the cause"
	}
	return ""
}

// missingCapabilityAdvice names the flags that enable the client capabilities a server requires.
func missingCapabilityAdvice(e *mcp.Error) string {
	var data struct {
		Required mcp.ClientCapabilities `json:"requiredCapabilities"`
	}
	_ = mcp.Decode(e.Data, &data) // the advice is optional
	switch {
	case data.Required.Elicitation != nil:
		return "the server asks you something: run dowel on a terminal, or answer with --answer key=value"
	case data.Required.Sampling != nil:
		return "the server asks a model something: answer with --sample-text TEXT"
	case data.Required.Roots != nil:
		return "the server asks for folders to work on: name them with --root DIR"
	}
	return ""
}

// ProtocolError returns the JSON-RPC error in err that a server answered with, or nil.
func ProtocolError(err error) *mcp.Error {
	var answered *mcp.Error
	errors.As(err, &answered)
	return answered
}

// Object returns the JSON form of an error.
func Object(err error, code int, advice string) map[string]any {
	object := map[string]any{"message": secretmask.Text(err.Error()), "exit": code}
	if answered := ProtocolError(err); answered != nil {
		object["code"] = answered.Code
		if answered.Data != nil {
			object["data"] = answered.Data
		}
	}
	if advice != "" {
		object["advice"] = advice
	}
	return object
}
