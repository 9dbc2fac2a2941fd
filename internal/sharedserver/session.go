package sharedserver

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// errNoSession is the error of a dial of the owner if the server opens no session.
var errNoSession = errors.New("the server opens no session")

// hasSession reports whether a transport has opened a session at its server. Over a transport that
// cannot tell, the connection is the session.
func hasSession(t mcp.Transport) bool {
	holder, ok := t.(interface{ HasSession() bool })
	return !ok || holder.HasSession()
}

// HasOwner reports whether one replica connects to the server for all. It is false for a server
// that opened no session, if the target is a [Pool.SessionTarget].
func (t *Target) HasOwner() bool { return !t.sessionsOnly || !t.server.hasNoSession.Load() }

// dialAlone connects to a server that opened no session at the last dial. It takes no lease, so it
// does not need the cluster. made is nil without an error if the server opens sessions now. After
// an error, too, this was a dial of the server itself.
func (t *Target) dialAlone(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (made mcp.Transport, err error) {
	own := &ownInbound{Inbound: in}
	made, err = t.dialer.Dial(ctx, own, opts)
	if err != nil || !hasSession(made) {
		t.server.owner.Store("")
		t.server.dialedOwn.Store(true)
		return made, err
	}
	own.once.Do(func() {}) // its loss is of no interest
	t.server.hasNoSession.Store(false)
	_ = made.Close()
	return nil, nil
}
