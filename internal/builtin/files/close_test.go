package files

import (
	"context"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Close ends subscriptions and the watching. Later events do no harm.
func TestCloseEndsWatching(t *testing.T) {
	d := newDesk(t, map[string]string{"a": ""})
	s, err := New(Options{Roots: []string{d.dir}})
	d.must(err)
	ended := make(chan error, 1)
	acknowledged := make(chan struct{}, 1)
	go func() {
		_, err := s.ServeMCP(t.Context(), &mcp.Request{
			Method: mcp.MethodListen, Revision: mcp.Revision20260728, Peer: peer{acknowledged},
			Params: []byte(`{"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["` + uriOf(d.path("a")) + `"]}}`),
		})
		ended <- err
	}()
	<-acknowledged
	d.must(s.Close())
	select {
	case err := <-ended:
		d.must(err)
	case <-time.After(time.Minute):
		t.Fatal("the subscription has not ended")
	}
	if s.watcher.watchTarget(target{place{s.roots[0], "a"}, "x"}) {
		t.Error("a closed server watches")
	}
	d.must(s.watcher.closeWatcher())
}

// peer reports the acknowledgement.
type peer struct{ acknowledged chan struct{} }

func (peer) Notify(context.Context, mcp.Notification) error { return nil }

func (p peer) Change(_ context.Context, c mcp.Notification) error {
	if c.Method == mcp.NotificationAcknowledged {
		p.acknowledged <- struct{}{}
	}
	return nil
}
