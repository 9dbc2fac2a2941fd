package hub

import (
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
)

// Status is the activity of an upstream. The zero value means that the status is unknown.
type Status int

const (
	// Starting: the hub is starting the server or connecting to it.
	Starting Status = iota + 1
	// Ready: calls reach the server.
	Ready
	// Failed: the last attempt failed. State.Diagnosis says why, State.Next when the next one
	// begins.
	Failed
	// Stopped: the next call starts the server.
	Stopped
	// Disabled, NeedsConfiguration and NeedsTrust: the definition holds the server. State.Cause has
	// the reason.
	Disabled
	NeedsConfiguration
	NeedsTrust
	// NeedsAuthorization: like Failed, and the server asks for credentials.
	NeedsAuthorization
	// NeedsLogin: the user must log in. If State.LoginURL is set, the server's process is starting
	// and waits for a login there. Otherwise the status is like Failed, and State.Diagnosis says
	// how to log in.
	NeedsLogin
	// Removed: the hub has ended the upstream and does not list it any more.
	Removed
)

// statusNames are the texts of [Status.String], which are part of JSON output.
var statusNames = [...]string{
	Starting: "starting", Ready: "ready", Failed: "failed", Stopped: "stopped", Disabled: "disabled",
	NeedsConfiguration: "needs configuration", NeedsTrust: "needs trust", NeedsAuthorization: "needs authorization", NeedsLogin: "needs login", Removed: "removed",
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

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown text, such as one of a later
// version, becomes the zero Status.
func (s *Status) UnmarshalText(text []byte) error {
	*s = Status(max(0, slices.Index(statusNames[:], string(text))))
	return nil
}

// Held reports whether a server with that status is never started: it is disabled, removed, or
// needs configuration or trust.
func (s Status) Held() bool {
	return s == Disabled || s == NeedsConfiguration || s == NeedsTrust || s == Removed
}

// State is the state of an upstream and its reason.
type State struct {
	// Status is the activity of the upstream, Since the time when it began.
	Status Status
	Since  time.Time
	// Cause says in a few words why the upstream entered the state, such as "the file dowel.json
	// changed".
	Cause string
	// Err and Diagnosis describe the last failure if the status is Failed, NeedsAuthorization or
	// NeedsLogin, or is Starting after one of these.
	Err       error
	Diagnosis *Diagnosis
	// Installing is when a package runner, such as npx, began to install the server. It is zero if
	// none is at work; otherwise the status is Starting.
	Installing time.Time
	// LoginURL is the address at which the user must log in for the server's process. The text is
	// from the server.
	LoginURL string
	// Attempt counts failed attempts since the last stable connection. Next is when the next
	// attempt begins, if the status is Failed, NeedsAuthorization or NeedsLogin. It is zero if only
	// a change can help, which Cause names: then a change of the definition, [Upstream.Restart] or,
	// for a missing program or folder, its appearance begins the next attempt.
	Attempt int
	Next    time.Time
}

// Diagnosis explains a failed start or a lost connection: a summary, advice for the user, and what
// is known of the process. It contains no secrets of the definition.
type Diagnosis = doctor.Diagnosis
