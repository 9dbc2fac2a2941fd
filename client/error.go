package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// CallError says which call to which server failed. Use [errors.As] and [errors.Is] to look at its
// cause.
type CallError struct {
	Server string
	Method string
	Name   string // the tool, prompt or URI; empty for other methods
	Err    error
}

func (e *CallError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %s: %v", e.Server, e.Method, e.Err)
	}
	return fmt.Sprintf("%s: %s %s: %v", e.Server, e.Method, e.Name, e.Err)
}

func (e *CallError) Unwrap() error { return e.Err }

func (c *Client) callError(method, name string, err error) error {
	return &CallError{Server: c.serverName(), Method: method, Name: name, Err: err}
}

// ToolError is a failure that a tool reported in its result, in words for the model.
type ToolError struct {
	Server string
	Tool   string
	Result *mcp.CallToolResult
}

// Error returns the texts of the tool's content.
func (e *ToolError) Error() string {
	words := make([]string, 0, len(e.Result.Content))
	for _, c := range e.Result.Content {
		words = append(words, c.String())
	}
	if len(words) == 0 {
		words = append(words, "the tool failed without a message")
	}
	return fmt.Sprintf("%s: %s: %s", e.Server, e.Tool, strings.Join(words, "\n"))
}

// OutputError reports that a tool's structured result does not match the tool's output schema, or
// that the schema has a dialect or a reference that the client does not know. See
// [Options.NoOutputCheck].
type OutputError struct {
	Tool   string
	Result *mcp.CallToolResult
	Err    error
}

func (e *OutputError) Error() string {
	if errors.Is(e.Err, schema.ErrUnsupported) {
		return fmt.Sprintf("the result of %s cannot be checked against its output schema: %v", e.Tool, e.Err)
	}
	return fmt.Sprintf("the result of %s does not match its own output schema: %v", e.Tool, e.Err)
}

func (e *OutputError) Unwrap() error { return e.Err }

// TimeoutKind names the limit that was exceeded.
type TimeoutKind string

const (
	TimeoutConnect TimeoutKind = "connect" // [Limits].Connect, Start or Install
	TimeoutIdle    TimeoutKind = "idle"    // [Limits].Idle
	TimeoutTotal   TimeoutKind = "total"   // [Limits].Total
)

// TimeoutError reports that a limit of this client was exceeded. The call was cancelled at the
// server. [errors.Is] matches it with [context.DeadlineExceeded].
type TimeoutError struct {
	Kind   TimeoutKind
	After  time.Duration
	Method string // empty on connect

	isInstall bool // a package runner did not finish within [Limits].Install
}

func (e *TimeoutError) Error() string {
	switch {
	case e.isInstall:
		return fmt.Sprintf("the install has not finished within %v", e.After)
	case e.Kind == TimeoutConnect:
		return fmt.Sprintf("no connection within %v", e.After)
	case e.Kind == TimeoutIdle:
		return fmt.Sprintf("timed out: no sign of life for %v", e.After)
	}
	return fmt.Sprintf("timed out: not done within %v", e.After)
}

// Is matches [context.DeadlineExceeded].
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout returns true. It implements [net.Error].
func (e *TimeoutError) Timeout() bool { return true }

// ErrRounds is wrapped by the error of a call that asked for input more than [Limits].MaxRounds
// times.
var ErrRounds = errors.New("too many rounds of questions")

// unreadable says that a peer's result does not have its method's form.
func unreadable(err error) error { return fmt.Errorf("the result cannot be read: %w", err) }

// connectionError returns an error that wraps [mcp.ErrConnection] and err.
func connectionError(err error) error {
	switch {
	case err == nil:
		return mcp.ErrConnection
	case errors.Is(err, mcp.ErrConnection):
		return err
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

func gaveUpError(tries int, err error) error {
	err = connectionError(err)
	if tries == 0 {
		return err
	}
	return fmt.Errorf("%w; gave up after %d attempts to restore it in a row", err, tries)
}

// addTimeoutCause adds the limit that ended ctx to err, the error of the operation it interrupted.
func addTimeoutCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, cause): // err already wraps it and adds detail, such as the server's message
		return err
	case errors.Is(cause, err):
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// unavailableError explains why a call got no connection: cause, and the last failure to connect.
func unavailableError(cause error, s State) error {
	if s.Err == nil {
		return cause
	}
	return fmt.Errorf("%w, after this: %w", cause, s.Err)
}
