package daemon

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// inUseError is the error for an address that another program has. It names the program.
type inUseError struct {
	owner string
	err   error
}

func (e inUseError) Error() string { return e.owner + " uses that port" }
func (e inUseError) Unwrap() error { return e.err }

// ExplainListen returns the error of listening at a TCP address. If another program has the port,
// and the system tells which, the error names that program.
func ExplainListen(err error, address string) error {
	_, port, bad := net.SplitHostPort(address)
	if bad != nil || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	name, pid := portOwner(port)
	if pid == 0 {
		return err
	}
	return inUseError{fmt.Sprintf("%s (process %d)", name, pid), err}
}
