package control

import (
	"errors"
	"net"
)

// Place is that of the dowel that is running: where others connect to it. Close takes no further connections; another dowel
// has the place after Release only, so that what the one has started has ended when the other begins.
type Place struct {
	net.Listener
	release func() error // nil where there is nothing to release
}

// Release closes the place and lets another dowel have it. It may be called more than once.
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
