// Package tasks stores the tasks of a server: calls that continue after the answer
// to their request.
//
// A [Record] is everything that is needed to show a task and to run its handler again, so the
// replica that answers a question need not be the one that asked it. A [Store] changes a record
// only by compare-and-set. [Memory] is a store for one process.
package tasks

import (
	"encoding/json"
	"maps"
	"time"
)

// Status is the state of a task. A task never leaves a terminal state.
type Status string

const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// IsTerminal reports whether the task has ended.
func (s Status) IsTerminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Record is one version of a task. A stored Record is never modified: change a [Record.Clone].
type Record struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"` // set by the store
	// Owner is the principal that made the task.
	Owner string `json:"owner,omitzero"`
	// Space names the program part that made the task, since several may share a store.
	Space string `json:"space,omitzero"`
	// Runner is the process that runs the task, or has run it last. The store sets it at first.
	Runner string `json:"runner,omitzero"`
	// Epoch counts the runs of the task's function, from 0. The request that begins a run increases
	// it, and a run changes the record only in its own epoch. So the run of a process that was
	// taken for gone changes nothing any more.
	Epoch int `json:"epoch,omitzero"`

	Status  Status        `json:"status"`
	Message string        `json:"message,omitzero"`
	Created time.Time     `json:"created"`
	Updated time.Time     `json:"updated"`
	TTL     time.Duration `json:"ttl"` // from Created; the store drops the record then
	Poll    time.Duration `json:"poll"`

	// Tool and Params repeat the call.
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
	// State holds the answers and the remembered steps of earlier runs, in the form of the server.
	State json.RawMessage `json:"state,omitempty"`
	// Asked is the number of questions that the task has asked. It makes their keys unique.
	Asked int `json:"asked,omitzero"`
	// Open holds the questions without answers, by the key that the client sees.
	Open map[string]Question `json:"open,omitempty"`
	// Answers holds the answers since the last run, by the handler's key.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`

	// Result is the result of a completed task.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the JSON-RPC error of a failed task.
	Error json.RawMessage `json:"error,omitempty"`
}

// Question is a question to the client.
type Question struct {
	Key    string          `json:"key"` // of the handler
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Clone returns a copy that may be changed. The raw values are shared and must not be modified.
func (r *Record) Clone() *Record {
	next := *r
	next.Open, next.Answers = maps.Clone(r.Open), maps.Clone(r.Answers)
	return &next
}

// Expires returns the time at which the store drops the record.
func (r *Record) Expires() time.Time { return r.Created.Add(r.TTL) }
