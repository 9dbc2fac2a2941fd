package tasks

import (
	"context"
	"errors"
	"fmt"
)

// Errors of a [Store]. Use [errors.Is] to find them.
var (
	// ErrUnknown reports that the store has no record of the id, or that the record has expired.
	ErrUnknown = errors.New("unknown task")
	// ErrConflict reports that the record was changed since it was loaded.
	ErrConflict = errors.New("the task was changed meanwhile")
	// ErrTooMany reports that the owner has the most tasks that the store allows.
	ErrTooMany = errors.New("too many tasks")
	// ErrTooLarge reports that the store cannot keep a record of this size.
	ErrTooLarge = errors.New("the task is larger than a stored task may be")
	// ErrClosed reports that the store has been closed.
	ErrClosed = errors.New("the store of tasks is closed")
)

// Store keeps records until they expire. It may be used concurrently. An engine needs only a
// conditional write for it, and no transaction over several records.
type Store interface {
	// Create stores a new record and names this process as its runner. After it has returned, every
	// replica can load the record. It fails with [ErrTooMany] if the owner has most records
	// already; 0 means no limit.
	Create(ctx context.Context, r *Record, most int) error
	// Load returns the newest version of a record.
	Load(ctx context.Context, id string) (*Record, error)
	// Replace stores next as a new version if next.Version is still the stored version. It then
	// sets next.Version, and the store owns next.
	Replace(ctx context.Context, next *Record) error
	// List returns the newest versions of an owner's records, in the order of their creation.
	List(ctx context.Context, owner string) ([]*Record, error)
	// ListTool returns the newest versions of the records of a tool that have not ended, in any
	// order.
	ListTool(ctx context.Context, tool string) ([]*Record, error)
	// Runner returns the name of this process in records.
	Runner() string
	// IsGone reports whether a process has ended. Its tasks that have not ended are orphans.
	IsGone(runner string) bool
	// Prepare returns an error if the store cannot keep a new record now.
	Prepare() error
	// Close ends the store. Later calls may fail.
	Close() error
}

// TooMany returns the error of an owner that has the most records that are allowed.
func TooMany(most int) error {
	return fmt.Errorf("%w: at most %d are kept, each until its time to live is over", ErrTooMany, most)
}

// Update loads a record, lets change modify a copy, and stores the copy, again and again until no
// other change comes between. If change returns false, or the task has ended, nothing is stored: a
// task never leaves a terminal state. Update returns the newest record and whether it stored it.
func Update(ctx context.Context, s Store, id string, change func(next *Record) bool) (*Record, bool, error) {
	for {
		r, err := s.Load(ctx, id)
		if err != nil {
			return nil, false, err
		}
		if r.Status.IsTerminal() {
			return r, false, nil
		}
		next := r.Clone()
		if !change(next) {
			return r, false, nil
		}
		err = s.Replace(ctx, next)
		if !errors.Is(err, ErrConflict) {
			return next, err == nil, err
		}
	}
}
