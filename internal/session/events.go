package session

import (
	"encoding/json"
	"slices"

	"github.com/dowel-mcp/dowel/agent"
)

// Names of the events that a trace reads.
const (
	eventCompacted = "compacted"
	eventDecided   = "decided"
	eventStarted   = "started"
	eventContinued = "continued"
	// EventModel names the model of all later replies.
	EventModel = "model"
	// EventMode says which tools may run in a conversation of the console.
	EventMode = "mode"
)

// compactedNote has the tokens of the next request before and after a compaction.
type compactedNote struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// decidedNote is a decision about a call.
type decidedNote struct {
	Call    string `json:"call"`
	Server  string `json:"server"`
	Allowed bool   `json:"allowed"`
	By      string `json:"by"`
	Reason  string `json:"reason"`
	// At says where the user has decided, "" on the agent's own terminal.
	At string `json:"at,omitzero"`
}

// modeNote is the mode of a conversation of the console from now on.
type modeNote struct {
	Mode string `json:"mode"`
}

// Mode stores which tools may run from now on.
func (s *Session) Mode(mode string) error { return s.Note(EventMode, modeNote{mode}) }

// LastMode returns the mode that a session has stored last, or "".
func (l *Loaded) LastMode() (mode string) {
	for _, e := range l.Events {
		if e.Name == EventMode {
			mode = decodeNote[modeNote](e.Data).Mode
		}
	}
	return mode
}

// continuedNote names a program that continues a session which another program has begun.
type continuedNote struct {
	Program string `json:"program"`
}

// Continued stores that a program continues a session which another program has begun.
func (s *Session) Continued(program string) error {
	return s.Note(eventContinued, continuedNote{program})
}

// IsContinued reports whether a second program has continued the session.
func (l *Loaded) IsContinued() bool {
	return slices.ContainsFunc(l.Events, func(e Event) bool { return e.Name == eventContinued })
}

// startedNote is the beginning of a call, after its approval.
type startedNote struct {
	Call string `json:"call"`
}

// Decided stores a decision of the user, or a refusal. at says where the user has decided; "" means
// on the agent's own terminal.
func (s *Session) Decided(e agent.Approval, at string) error {
	return s.Note(eventDecided, decidedNote{e.Call.ID, e.Server, e.Allowed, e.By, e.Reason, at})
}

// Started stores that a call begins.
func (s *Session) Started(call string) error { return s.Note(eventStarted, startedNote{call}) }

// decodeNote decodes an event's data. Data of another form give the zero value.
func decodeNote[T any](data json.RawMessage) (note T) {
	if json.Unmarshal(data, &note) != nil {
		var none T
		return none
	}
	return note
}
