package agent

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Resources returns the server's resources. At most 10,000 are listed, and as many templates, and
// the last 32 that an agent has read are watched.
func (b *Toolbox) Resources() Resources { return b.resources }

// toolboxResources are the resources of a toolbox.
type toolboxResources struct {
	box     *Toolbox
	watches *resourceWatches
}

// maxResources limits a list of resources, and a list of templates.
const maxResources = 10_000

// ListResources implements [Resources].
func (b toolboxResources) ListResources(ctx context.Context) (all []Resource, err error) {
	if b.box.client.Server().Capabilities.Resources == nil {
		return nil, nil
	}
	for r, err := range b.box.client.Resources(ctx) {
		if err != nil {
			return nil, err
		}
		server, _ := r.Meta[wirename.MetaServer].(string)
		if all = append(all, Resource{Resource: r, Server: server}); len(all) == maxResources {
			break
		}
	}
	n := 0
	for t, err := range b.box.client.ResourceTemplates(ctx) {
		if isMissingMethod(err) { // as with many servers
			break
		}
		if err != nil {
			return nil, err
		}
		server, _ := t.Meta[wirename.MetaServer].(string)
		all = append(all, Resource{Server: server, Template: true, Resource: mcp.Resource{
			URI: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Description, MIMEType: t.MIMEType,
			Icons: t.Icons, Annotations: t.Annotations, Meta: t.Meta,
		}})
		if n++; n == maxResources {
			break
		}
	}
	return all, nil
}

// isMissingMethod reports whether an error says that a server lacks the method.
func isMissingMethod(err error) bool {
	var answered *mcp.Error
	return errors.Is(err, errors.ErrUnsupported) || errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound
}

// ReadResource implements [Resources].
func (b toolboxResources) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	if a, ok := ctx.Value(targetKey{}).(*questionTarget); ok {
		b.box.addTarget(a)
		defer b.box.removeTarget(a)
	}
	return b.box.client.ReadResource(ctx, uri, client.CallOptions{NoCache: true}) // it is read again because it may have changed
}

// WatchResource implements [Resources].
func (b toolboxResources) WatchResource(ctx context.Context, uri string, changed func()) {
	w := b.watches.addResource(b.box.client, uri, changed)
	if w == nil {
		return
	}
	select {
	case <-w.answered:
	case <-ctx.Done():
		b.watches.markLate(w)
	}
}

// maxWatched limits the watched resources of a toolbox, each of which has a subscription.
const maxWatched = 32

// resourceWatches are the watched resources of a toolbox.
type resourceWatches struct {
	ctx    context.Context // of the subscriptions
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // guards the fields below, and the fields of each watch
	all    []*resourceWatch
	closed bool
}

// resourceWatch is the subscription to one resource.
type resourceWatch struct {
	uri      string
	changed  func()
	cancel   context.CancelFunc
	answered chan struct{} // closed when the server has accepted or refused the subscription
	late     bool          // changed is called when the server accepts the subscription
}

func newResourceWatches() *resourceWatches {
	w := &resourceWatches{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// addResource starts to watch a resource, unless it is watched already. It returns nil after
// closeWatches.
func (s *resourceWatches) addResource(c *client.Client, uri string, changed func()) *resourceWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	for _, w := range s.all {
		if w.uri == uri {
			w.changed = changed
			return w
		}
	}
	if len(s.all) == maxWatched {
		s.all[0].cancel()
		s.all = slices.Delete(s.all, 0, 1)
	}
	w := &resourceWatch{uri: uri, changed: changed, answered: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.ctx)
	w.cancel = cancel
	s.all = append(s.all, w)
	s.work.Go(func() { s.subscribe(ctx, c, w) })
	return w
}

// subscribe sends the subscription of a watch, and returns with the server's answer.
func (s *resourceWatches) subscribe(ctx context.Context, c *client.Client, w *resourceWatch) {
	_, err := c.OnChange(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{w.uri}}, func(_ client.Change, err error) {
		if err != nil {
			s.removeWatch(w)
			return
		}
		s.reportChange(w) // also a gap, since a change may have been missed
	})
	s.mu.Lock()
	close(w.answered)
	late := w.late && err == nil
	s.mu.Unlock()
	switch {
	case err != nil:
		s.removeWatch(w)
	case late:
		s.reportChange(w)
	}
}

// reportChange calls the function of a watch, unless the watch was removed.
func (s *resourceWatches) reportChange(w *resourceWatch) {
	s.mu.Lock()
	changed := w.changed
	if !slices.Contains(s.all, w) {
		changed = func() {}
	}
	s.mu.Unlock()
	changed()
}

// removeWatch forgets a watch that has ended, so that the next read subscribes again.
func (s *resourceWatches) removeWatch(w *resourceWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.cancel()
	s.all = slices.DeleteFunc(s.all, func(other *resourceWatch) bool { return other == w })
}

// markLate has the resource count as changed when the server accepts its subscription.
func (s *resourceWatches) markLate(w *resourceWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.answered:
	default:
		w.late = true
	}
}

// closeWatches ends all subscriptions.
func (s *resourceWatches) closeWatches() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}
