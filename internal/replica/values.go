package replica

import (
	"context"
	"errors"
	"time"
)

// ErrStale is the error of [Values.Put] if the value has another version by now.
var ErrStale = errors.New("another replica has changed the value")

// Values are small values that all replicas see. The methods are called concurrently. Keys consist
// of letters, digits, - and _, in parts with dots between; [KeyOf] makes one of any text.
type Values interface {
	// Get returns a value and its version. Without a value, the value is nil; the version may be 0.
	Get(ctx context.Context, key string) (value []byte, version uint64, err error)
	// Put stores a value if its version is still the given one, and returns the new version. A nil
	// value removes it. The value vanishes after life, which is counted in seconds; 0 keeps it.
	Put(ctx context.Context, key string, value []byte, version uint64, life time.Duration) (uint64, error)
	// Watch calls changed after a value was stored whose key begins with prefix and a dot, until
	// stop is called. Changes during a loss of the connection are not reported; then changed is
	// called with an empty key when the connection is back.
	Watch(prefix string, changed func(key string)) (stop func(), err error)
}

// Update stores what change makes of a value, again until no other replica comes between. change
// may be called several times. It returns the error of change.
func Update(ctx context.Context, v Values, key string, life time.Duration, change func(value []byte) ([]byte, error)) error {
	for {
		value, version, err := v.Get(ctx, key)
		if err != nil {
			return err
		}
		if value, err = change(value); err != nil {
			return err
		}
		if _, err = v.Put(ctx, key, value, version, life); !errors.Is(err, ErrStale) {
			return err
		}
	}
}
