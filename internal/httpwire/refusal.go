package httpwire

import "errors"

// RefusalError is the error of an http.RoundTripper that cannot authorize a request. The transports
// do not treat it as a failure of the connection: the request is not repeated, and the client does
// not connect again.
type RefusalError struct {
	Err error
	// NeedsLogin says that a user must log in. NoServer says that no authorization server was
	// found, WrongClient that it refuses the client's credentials. They are facts about Err, for
	// packages that must not import package auth.
	NeedsLogin, NoServer, WrongClient bool
}

func (e *RefusalError) Error() string { return e.Err.Error() }

func (e *RefusalError) Unwrap() error { return e.Err }

// MeansLegacy returns false: the error says nothing about the server's era.
func (e *RefusalError) MeansLegacy() bool { return false }

// AsRefusal returns the [RefusalError] in err, or nil.
func AsRefusal(err error) error {
	if r, ok := errors.AsType[*RefusalError](err); ok {
		return r
	}
	return nil
}
