package definitions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of a record, about 5 MiB in total. Definitions beyond maxEntries are not accepted. Of
// definitions beyond the bounds of text only the digest is kept, so their differences are not
// shown.
const (
	maxEntries  = 10_000
	maxText     = 64 << 10 // bytes of one definition
	maxAllTexts = 1 << 20  // bytes of all definitions
	maxHistory  = 100      // changes
)

// Record holds the accepted and the current definitions of one server. A nil Record holds none. It
// is not safe for concurrent use.
type Record struct {
	// Entries are the definitions by kind and name.
	Entries map[string]*entry `json:"definitions"`
	// History are the last 100 changes, oldest first. Each shows the differences to the definition
	// before it, which need not be the accepted one.
	History []Change `json:"history,omitempty"`
	// ChangedStarts counts the last starts of the server in a row with a change.
	ChangedStarts int `json:"changedStarts,omitzero"`

	broken bool // the stored record could not be read: nothing is accepted
}

// entry is the record of one definition.
type entry struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitzero"`
	// First is when the definition was first seen.
	First    time.Time `json:"first"`
	Accepted version   `json:"accepted"`
	// Current is the definition that was seen last. It is nil if that is the accepted one.
	Current *version `json:"current,omitempty"`
}

// version is one form of a definition.
type version struct {
	Digest string    `json:"digest"`
	Time   time.Time `json:"time"` // when it was first seen
	// Text is missing if the record has no room for it.
	Text json.RawMessage `json:"text,omitempty"`
}

// last returns the version that was seen last.
func (e *entry) last() version {
	if e.Current != nil {
		return *e.Current
	}
	return e.Accepted
}

// changeTo describes a version that differs from the accepted one.
func (e *entry) changeTo(v version) *Change {
	return &Change{Kind: e.Kind, Name: e.Name, Digest: v.Digest, Time: v.Time, Lines: Compare(e.Accepted.Text, v.Text)}
}

// parseRecord reads a stored record. A record that cannot be read accepts nothing.
func parseRecord(stored []byte) *Record {
	r := &Record{}
	if len(stored) > 0 && json.Unmarshal(stored, r) != nil {
		r = &Record{broken: true}
	}
	if r.Entries == nil {
		r.Entries = map[string]*entry{}
	}
	maps.DeleteFunc(r.Entries, func(_ string, e *entry) bool { return e == nil })
	return r
}

// textSize returns the total size of the texts that the record keeps.
func (r *Record) textSize() (n int) {
	for _, e := range r.Entries {
		if n += len(e.Accepted.Text); e.Current != nil {
			n += len(e.Current.Text)
		}
	}
	return n
}

// Check returns the change that makes d differ from the accepted definition, or nil if d is
// accepted. The record must have observed d.
func (r *Record) Check(d Definition) *Change {
	if r == nil {
		return nil
	}
	digest, e := d.digest, r.Entries[d.key()]
	switch {
	case e == nil && r.broken:
		return &Change{Kind: d.kind, Name: d.name, Digest: digest, Time: time.Now(), Lines: []string{"the stored definitions cannot be read, so it is not known what has changed"}}
	case e == nil:
		return &Change{Kind: d.kind, Name: d.name, Digest: digest, Time: time.Now(), Lines: []string{fmt.Sprintf("it is beyond the first %d definitions of the server, and no others are recorded", maxEntries)}}
	case e.Accepted.Digest == digest:
		return nil
	case e.Current == nil || e.Current.Digest != digest: // another process has seen another one meanwhile
		return e.changeTo(version{Digest: digest, Time: time.Now(), Text: d.compactText()})
	}
	return e.changeTo(*e.Current)
}

// CheckAll returns the changes of all definitions, sorted by kind and name. Of several definitions
// of the same kind and name it checks the first.
func (r *Record) CheckAll(all []Definition) (changes []Change) {
	done := map[string]bool{}
	for _, d := range all {
		key := d.key()
		if done[key] {
			continue
		}
		done[key] = true
		if c := r.Check(d); c != nil {
			changes = append(changes, *c)
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name)) })
	return changes
}

// Changes returns the definitions that were seen last and are not accepted, sorted by kind and
// name.
func (r *Record) Changes() (all []Change) {
	if r == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(r.Entries)) {
		if e := r.Entries[key]; e.Current != nil {
			all = append(all, *e.changeTo(*e.Current))
		}
	}
	return all
}

// volatileStarts is the number of starts in a row with a change that make a server volatile.
const volatileStarts = 3

// IsVolatile reports whether definitions of the server have changed at each of its last starts.
func (r *Record) IsVolatile() bool { return r != nil && r.ChangedStarts >= volatileStarts }
