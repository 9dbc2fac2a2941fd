package tasks

import (
	"context"
	"errors"
)

// Errors of a [Store]. Use [errors.Is] to find them.
var (
	// ErrUnknown reports that the store has no record of the id, or that the record has expired.
	ErrUnknown = errors.New("unknown task")
	// ErrConflict reports that the record was changed since it was loaded.
	ErrConflict = errors.New("the task was changed meanwhile")
	// ErrTooMany reports that the owner has the most tasks that the store allows.
	ErrTooMany = errors.New("too many tasks")
)

// Store keeps records until they expire. It may be used concurrently. An engine needs only a
// conditional write for it: no list, no transaction over several records.
type Store interface {
	// Create stores a new record. After it has returned, every replica can load the record.
	Create(ctx context.Context, r *Record) error
	// Load returns the newest version of a record.
	Load(ctx context.Context, id string) (*Record, error)
	// Replace stores next as a new version if next.Version is still the stored version. It then sets
	// next.Version, and the store owns next.
	Replace(ctx context.Context, next *Record) error
}

// Lister is a [Store] that can list records.
type Lister interface {
	// List returns the newest versions of an owner's records, in the order of their creation.
	List(ctx context.Context, owner string) ([]*Record, error)
	// ListTool returns the newest versions of the records of a tool that have not ended, in any
	// order.
	ListTool(ctx context.Context, tool string) ([]*Record, error)
}

// Update loads a record, lets change modify a copy, and stores the copy, again and again until no
// other change comes between. If change returns false, nothing is stored. Update returns the newest
// record and whether it stored it.
func Update(ctx context.Context, s Store, id string, change func(next *Record) bool) (*Record, bool, error) {
	for {
		r, err := s.Load(ctx, id)
		if err != nil {
			return nil, false, err
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
