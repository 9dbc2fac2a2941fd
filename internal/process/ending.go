package process

import "errors"

// EndingError is the error of a failed start whose process tree is still being ended. It wraps the
// reason of the failure.
type EndingError struct {
	Err   error
	Child *Child
}

func (e *EndingError) Error() string { return e.Err.Error() }

func (e *EndingError) Unwrap() error { return e.Err }

// AwaitEnd waits until the process tree of an [*EndingError] in err has ended, at most as long as
// [Child.Close] may take. It returns at once for other errors.
func AwaitEnd(err error) {
	if ending, ok := errors.AsType[*EndingError](err); ok {
		_ = ending.Child.Close()
	}
}

// IsRollback reports whether err is an [*EndingError] of a package runner that was ended during an
// install, which takes up to 10 seconds to undo.
func IsRollback(err error) bool {
	ending, ok := errors.AsType[*EndingError](err)
	return ok && ending.Child.WasInstalling()
}
