package hub

import (
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/mcp"
)

// Status is what an upstream is doing. The zero Status is none.
type Status int

const (
	// Starting: it is being started or connected to.
	Starting Status = iota + 1
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

var statusNames = [...]string{
	Starting: "starting", Ready: "ready", Failed: "failed", Stopped: "stopped", Disabled: "disabled",
	NeedsConfiguration: "needs configuration", NeedsTrust: "needs trust", NeedsAuthorization: "needs authorization", Removed: "removed",
}

// String returns the status in words, such as "needs trust".
func (s Status) String() string {
	if s > 0 && int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", int(s))
}

// MarshalText implements [encoding.TextMarshaler].
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A status of a later dowel is none that is known here.
func (s *Status) UnmarshalText(text []byte) error {
	*s = Status(max(0, slices.Index(statusNames[:], string(text))))
	return nil
}

// Held reports whether a server with that status is not started whatever happens.
func (s Status) Held() bool {
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
	Diagnosis *doctor.Diagnosis
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
