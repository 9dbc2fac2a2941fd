package definitions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Log keeps the record of one server between its connections. Its method is called concurrently.
type Log interface {
	// Update replaces the record by the result of change, which takes the stored record, or nil
	// without one, and may return it unchanged. Nothing else may change the record between the call
	// of change and the storing of its result. change may be called more than once.
	Update(change func(record []byte) []byte) error
}

// Observe records definitions that a server has given, and returns the record. With an error, the
// record is valid, but not stored. isStart says that the server has just started and that these are
// all of its definitions.
func Observe(log Log, seen []Definition, isStart bool) (*Record, error) {
	return update(log, func(r *Record, now time.Time) bool { return r.observe(seen, isStart, now) })
}

// Review is Observe for definitions that were recorded already, possibly in another log. It records
// only those with a new name, so processes that see different definitions do not write in turn.
func Review(log Log, seen []Definition) (*Record, error) {
	return update(log, func(r *Record, now time.Time) bool { return r.addNew(seen, now) })
}

// update changes the record of a log, and returns it. change reports whether it has changed the
// record.
func update(log Log, change func(r *Record, now time.Time) bool) (*Record, error) {
	var r *Record
	now := time.Now().UTC().Truncate(time.Second)
	err := log.Update(func(stored []byte) []byte {
		r = parseRecord(stored)
		if !change(r, now) {
			return stored
		}
		return r.encode()
	})
	if r == nil { // the stored record cannot be read
		r = parseRecord([]byte("unreadable"))
	}
	return r, err
}

// Read returns the record of a log.
func Read(log Log) (*Record, error) { return Review(log, nil) }

// Accept makes changes the accepted definitions. A stored record that cannot be read is replaced.
func Accept(log Log, changes ...Change) error {
	return log.Update(func(stored []byte) []byte {
		r := parseRecord(stored)
		modified := r.broken && len(changes) > 0
		r.broken = false
		for _, c := range changes {
			modified = r.accept(c) || modified
		}
		if !modified {
			return stored
		}
		return r.encode()
	})
}

// encode returns the stored form of the record.
func (r *Record) encode() []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // texts are shown to users
	if err := e.Encode(r); err != nil {
		panic(fmt.Sprintf("definitions: a record of strings and valid JSON cannot be encoded: %v", err))
	}
	return out.Bytes()
}
