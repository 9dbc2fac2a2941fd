package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// Resources are the resources of an agent's servers, which [Tools] may have. If there are some, the
// model gets two tools, list_resources and read_resource. The methods are called concurrently. A
// token in [Tools].Changed also means that the resources may differ from the last list.
type Resources interface {
	// ListResources returns the resources and templates of all servers.
	ListResources(ctx context.Context) ([]Resource, error)
	// ReadResource reads the resource of a URI, which may be missing from the list. ctx carries the
	// same values as in Call.
	ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)
	// WatchResource calls changed, on any goroutine, when the resource of a URI may have changed.
	// It returns when the server reports changes from then on, or refuses to, or when ctx ends. In
	// the last case it calls changed once as soon as the server reports changes, since some may
	// have been missed.
	WatchResource(ctx context.Context, uri string, changed func())
}

// Resource is a resource of a server, or a template: then the URI has {variables} to fill in.
type Resource struct {
	mcp.Resource
	Server   string // empty if it is the only one
	Template bool
}

// ResourcesChanged reports that resources in the conversation may have changed since the model has
// read them. The model is told so. A resource is reported again only after it was read again.
type ResourcesChanged struct {
	event
	Resources []Resource // with URI and Server only
}

// Bounds of an agent's work with resources.
const (
	resourceListTimeout = 5 * time.Second        // for the lists of all servers
	subscribeTimeout    = 500 * time.Millisecond // for a server to report changes before its resource is read
	maxChangesNamed     = 20                     // resources in one event
)

// resourceState is the state of an agent's resources. All methods may be called concurrently.
type resourceState struct {
	source             Resources // nil: there are no resources
	listTool, readTool string    // the names of list_resources and read_resource

	mu      sync.Mutex // guards the fields below
	listed  []Resource // sorted by server, templates last
	stale   bool       // the list may be out of date
	failed  bool       // the last list failed
	inUse   map[string]bool
	changed []string // URIs in use that have changed, oldest first
}

// listedResources returns the resources and templates of the last list.
func (s *resourceState) listedResources() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// hasResources reports whether the servers have any.
func (s *resourceState) hasResources() bool { return len(s.listedResources()) > 0 }

// markStale has the next refreshList list the resources again.
func (s *resourceState) markStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// retryList has the next refreshList try again if the last list failed.
func (s *resourceState) retryList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = s.stale || s.failed
}

// refreshList lists the resources if they may have changed. After an error the last list stays.
// Only the first of several errors in a row is returned.
func (s *resourceState) refreshList(ctx context.Context) error {
	s.mu.Lock()
	stale := s.stale && s.source != nil
	s.stale = false // after an error, the next change or the next run tries again
	s.mu.Unlock()
	if !stale {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, resourceListTimeout, fmt.Errorf("they did not arrive within %v", resourceListTimeout))
	defer cancel()
	listed, err := s.source.ListResources(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.failed {
			return nil
		}
		s.failed = true
		return fmt.Errorf("the resources could not be listed: %w", err)
	}
	slices.SortStableFunc(listed, compareResources)
	s.listed, s.failed = listed, false
	return nil
}

// compareResources orders resources by server, and templates behind the others. The server's own
// order stays.
func compareResources(a, b Resource) int {
	if a.Server != b.Server {
		return strings.Compare(a.Server, b.Server)
	}
	switch {
	case a.Template == b.Template:
		return 0
	case b.Template:
		return -1
	}
	return 1
}

// listedURI returns the URI under which the list has a resource. A URI that names its server is the
// same as the server's own URI if no other server has that one.
func (s *resourceState) listedURI(uri string) string {
	host, own, qualified := wirename.SplitResourceURI(uri)
	if qualified {
		if owners := s.findOwners(own); len(owners) == 1 && wirename.Host(owners[0]) == host {
			return own
		}
	}
	return uri
}

// findOwners returns the servers that list a URI or a template for it.
func (s *resourceState) findOwners(uri string) (servers []string) {
	for _, r := range s.listedResources() {
		matches := r.URI == uri
		if r.Template {
			t, err := uritemplate.Parse(r.URI)
			matches = err == nil && matchesTemplate(t, uri)
		}
		if matches && !slices.Contains(servers, r.Server) {
			servers = append(servers, r.Server)
		}
	}
	return servers
}

func matchesTemplate(t *uritemplate.Template, uri string) bool {
	_, ok := t.Match(uri)
	return ok
}

// describeURI returns a URI and the only server that it names, or that has it. The server is empty
// if it is unknown, or the agent's only one.
func (s *resourceState) describeURI(uri string) Resource {
	found := Resource{Resource: mcp.Resource{URI: uri}}
	if host, _, qualified := wirename.SplitResourceURI(uri); qualified {
		found.Server = host
		for _, r := range s.listedResources() {
			if wirename.Host(r.Server) == host {
				found.Server = r.Server
				break
			}
		}
	} else if owners := s.findOwners(uri); len(owners) == 1 {
		found.Server = owners[0]
	}
	return found
}

// markInUse records that the conversation holds the resource as it is now.
func (s *resourceState) markInUse(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		s.inUse = map[string]bool{}
	}
	s.inUse[uri] = true
	s.changed = slices.DeleteFunc(s.changed, func(other string) bool { return other == uri })
}

// markChanged records a change of a resource. It counts once until the resource is read again.
func (s *resourceState) markChanged(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse[uri] {
		delete(s.inUse, uri)
		s.changed = append(s.changed, uri)
	}
}

// takeChanged returns resources that have changed since the last call, at most maxChangesNamed. The
// others come with the next calls.
func (s *resourceState) takeChanged() (all []Resource) {
	s.mu.Lock()
	n := min(len(s.changed), maxChangesNamed)
	uris := slices.Clone(s.changed[:n])
	s.changed = slices.Delete(s.changed, 0, n)
	s.mu.Unlock()
	for _, uri := range uris {
		all = append(all, s.describeURI(uri))
	}
	return all
}

// readContent reads a resource as content for the model, and watches it from then on.
func (s *resourceState) readContent(ctx context.Context, uri string) ([]mcp.Content, error) {
	uri = s.listedURI(uri)
	subscribing, cancel := context.WithTimeout(ctx, subscribeTimeout)
	s.source.WatchResource(subscribing, uri, func() { s.markChanged(uri) }) // first, so that no change is missed
	cancel()
	res, err := s.source.ReadResource(ctx, uri)
	if err != nil {
		return nil, err
	}
	s.markInUse(uri)
	return resourceContent(s.describeURI(uri), res.Contents), nil
}

// resourceContent returns the contents of a resource behind a text that names it.
func resourceContent(r Resource, parts []mcp.ResourceContents) []mcp.Content {
	label := "The resource " + oneLine(r.URI)
	if r.Server != "" {
		label += " of the server " + oneLine(r.Server)
	}
	if len(parts) == 0 {
		return []mcp.Content{mcp.Text(label + " is empty.")}
	}
	content := []mcp.Content{mcp.Text(label + ":")}
	for _, part := range parts {
		content = append(content, mcp.Embed(part))
	}
	return content
}

// ReadResource reads a resource as content for [Agent.Run]. Like a tool's result, it is limited by
// [Limits], and [ResourcesChanged] reports when it has changed. It must not be called during a run.
func (a *Agent) ReadResource(ctx context.Context, uri string) ([]mcp.Content, error) {
	if a.resources.source == nil {
		return nil, fmt.Errorf("%s cannot be read: the agent's tools have no resources", oneLine(uri))
	}
	if err := a.refreshTools(ctx); err != nil { // the names of the agent's own tools depend on them
		return nil, err
	}
	_ = a.resources.refreshList(ctx) // without it, only the server's name is missing
	content, err := a.resources.readContent(ctx, uri)
	if err != nil {
		return nil, err
	}
	limits := &a.opts.Limits
	return a.results.limitResult(mcp.ToolResultContent{Content: content}, limits.MaxResult, limits.MaxMedia).Content, nil
}

// announceResources tells the model which resources have changed since it has read them.
func (r *run) announceResources() {
	if err := r.resources.refreshList(r.ctx); err != nil && r.ctx.Err() == nil {
		r.emit(Delta{Notice: err.Error()})
	}
	changed, err := r.skills.refreshList(r.ctx)
	if err != nil && r.ctx.Err() == nil {
		r.emit(Delta{Notice: err.Error()})
	}
	if changed {
		r.offer.tools = nil // the definition of read_skill lists the skills
	}
	if changed := r.resources.takeChanged(); len(changed) > 0 {
		r.emit(ResourcesChanged{Resources: changed})
		r.history.appendContent(mcp.RoleUser, mcp.Text(r.resources.describeChanged(changed)))
	}
}

// describeChanged describes a change for the model.
func (s *resourceState) describeChanged(changed []Resource) string {
	var names []string
	for _, r := range changed {
		name := oneLine(r.URI)
		if r.Server != "" {
			name += " of the server " + oneLine(r.Server)
		}
		names = append(names, name)
	}
	return fmt.Sprintf("[These resources may have changed since you have read them: %s. If they still matter, read them again with %s.]",
		strings.Join(names, ", "), s.readTool)
}
