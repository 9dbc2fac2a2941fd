package control

import (
	"errors"
	"net"
)

// Place is the socket of the running dowel. Close accepts no further connections. Another dowel can
// have the place only after Release, so that the servers of this one have ended before the servers
// of the next one start.
type Place struct {
	net.Listener
	Fallback error        // why the socket is in a folder for temporary files; nil if it is not
	release  func() error // releases the lock; nil without one
}

// Release closes the socket and lets another dowel have the place. It may be called more than once.
func (p *Place) Release() error {
	err := p.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if p.release == nil {
		return err
	}
	released := p.release()
	p.release = nil
	return errors.Join(err, released)
}
