package frames

import (
	"context"
	"errors"
)

// ErrCancelled is the cause of a request's context when the peer has cancelled the request.
var ErrCancelled = errors.New("cancelled by the client")

// CancelledError is [ErrCancelled] with the reason that the peer gave, which may be empty.
// It is also [context.Canceled].
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string {
	if e.Reason == "" {
		return ErrCancelled.Error()
	}
	return ErrCancelled.Error() + ": " + e.Reason
}

// Is reports whether target is ErrCancelled or [context.Canceled].
func (e *CancelledError) Is(target error) bool {
	return target == ErrCancelled || target == context.Canceled
}
