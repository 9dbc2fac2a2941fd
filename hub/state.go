package hub

import (
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Status is what an upstream is doing.
type Status int

const (
	// Starting: it is being started or connected to.
	Starting Status = iota
	// Ready: calls reach it.
	Ready
	// Failed: State.Diagnosis says why, and State.Next when it is tried again.
	Failed
	// Stopped: it is started by the next call.
	Stopped
	// Disabled, NeedsConfiguration and NeedsTrust: it is not started, see State.Cause.
	Disabled
	NeedsConfiguration
	NeedsTrust
	// NeedsAuthorization: the server wants to know who asks.
	NeedsAuthorization
	// Removed: the hub does not have it any more.
	Removed
)

// String returns the status in words, such as "needs trust".
func (s Status) String() string {
	switch s {
	case Starting:
		return "starting"
	case Ready:
		return "ready"
	case Failed:
		return "failed"
	case Stopped:
		return "stopped"
	case Disabled:
		return "disabled"
	case NeedsConfiguration:
		return "needs configuration"
	case NeedsTrust:
		return "needs trust"
	case NeedsAuthorization:
		return "needs authorization"
	case Removed:
		return "removed"
	}
	return fmt.Sprintf("Status(%d)", int(s))
}

// MarshalText implements [encoding.TextMarshaler].
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// held reports whether the server is not started whatever happens.
func (s Status) held() bool {
	return s == Disabled || s == NeedsConfiguration || s == NeedsTrust || s == Removed
}

// State is what an upstream is doing, and why.
type State struct {
	Status Status
	Since  time.Time
	// Cause says what has led here, in a few words: "started", "the file dowel.json changed".
	Cause string
	// Err and Diagnosis say what went wrong where Status is Failed or NeedsAuthorization, and in a Starting that follows.
	Err       error
	Diagnosis *Diagnosis
	// Attempt counts the attempts in this row, and Next is when the next one begins.
	Attempt int
	Next    time.Time
}

// Info is what is known of an upstream that is, or was, ready.
type Info struct {
	Server       mcp.Implementation
	Revision     mcp.Revision
	Instructions string
	Capabilities mcp.ServerCapabilities
	// Took is how long it took to become ready.
	Took time.Duration
}
