package server

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// subscriptions holds the open subscriptions.
type subscriptions struct {
	mu     sync.RWMutex
	all    map[*listener]struct{}
	byURI  map[string]map[*listener]struct{}
	byTask map[string]map[*listener]struct{} // by id

	closed   atomic.Bool   // by Server.Close
	interval time.Duration // least time between notifications of list changes
}

func (s *subscriptions) init(interval time.Duration) {
	s.interval = interval
	s.all, s.byURI, s.byTask = map[*listener]struct{}{}, map[string]map[*listener]struct{}{}, map[string]map[*listener]struct{}{}
}

// close ends all subscriptions, present and future.
func (s *subscriptions) close() {
	s.closed.Store(true)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.all {
		l.wakeUp()
	}
}

func (s *subscriptions) addListener(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[l] = struct{}{}
	if s.closed.Load() {
		l.wakeUp()
	}
	addTo(s.byURI, l.uris, l)
	addTo(s.byTask, l.tasks, l)
}

// addTo adds a listener to an index under each of its keys.
func addTo(index map[string]map[*listener]struct{}, keys []string, l *listener) {
	for _, key := range keys {
		if index[key] == nil {
			index[key] = map[*listener]struct{}{}
		}
		index[key][l] = struct{}{}
	}
}

func (s *subscriptions) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
	removeFrom(s.byURI, l.uris, l)
	removeFrom(s.byTask, l.tasks, l)
}

// removeFrom removes a listener from an index.
func removeFrom(index map[string]map[*listener]struct{}, keys []string, l *listener) {
	for _, key := range keys {
		delete(index[key], l)
		if len(index[key]) == 0 {
			delete(index, key)
		}
	}
}

// notifyListChanged notes a change of the items' lists here and at other replicas. With
// Options.Visible and isFiltered, only listeners that may see one of the items are notified.
func (s *Server) notifyListChanged(isFiltered bool, items []Item) {
	var changed listSet
	for _, item := range items {
		changed |= listOfKind(item.Kind)
	}
	if changed == 0 {
		return
	}
	if !isFiltered || s.opts.Visible == nil {
		items = nil
	}
	s.subscriptions.noteLists(changed, items)
	s.replicas.noteLists(changed, items)
}

// noteLists notes a change of lists for all listeners: for every principal if items is nil, else
// for principals that see one of the items.
func (s *subscriptions) noteLists(changed listSet, items []Item) {
	now := time.Now()
	for _, item := range items {
		changed |= listOfKind(item.Kind)
	}
	if changed == 0 {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.all {
		l.noteListChange(changed, items, now, s.interval)
	}
}

// everything returns all that the listeners listen to.
func (s *subscriptions) everything() (c changedThings) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.all {
		c.lists |= l.wanted
	}
	for uri := range s.byURI {
		setIn(&c.uris, uri, true)
	}
	for id := range s.byTask {
		setIn(&c.tasks, id, true)
	}
	return c
}

// taskIDs returns the tasks that listeners follow.
func (s *subscriptions) taskIDs() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.byTask))
}

// Updated notifies the clients that subscribed to the resource, or to a resource above it in the
// hierarchy of URI paths, with or without a trailing slash. It does not wait for them. Several
// changes of one resource that a client has not received yet become one. In a cluster (package
// cluster), it also notifies the clients at other replicas: call it at the replica that makes the
// change.
func (s *Server) Updated(uri string) {
	s.subscriptions.notifyUpdated(uri, s.opts.Visible != nil)
	s.replicas.noteUpdate(uri)
}

// notifyUpdated notes an update of a resource. If isFiltered, not every principal may know of it.
func (s *subscriptions) notifyUpdated(uri string, isFiltered bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.byURI) == 0 {
		return
	}
	var u *resourceUpdate
	forEachAncestor(uri, func(subscribed string) {
		for l := range s.byURI[subscribed] {
			if u == nil {
				u = newResourceUpdate(uri)
			}
			l.noteUpdate(u, subscribed, isFiltered)
		}
	})
}

// forEachAncestor calls fn with the URI and the URIs above it, the nearest first.
func forEachAncestor(uri string, fn func(string)) {
	fn(uri)
	path := uri
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	root := strings.Index(path, "://")
	if root < 0 {
		return
	}
	root += len("://")
	for at := len(path) - 1; at >= root-1; at-- {
		if path[at] != '/' {
			continue
		}
		if at+1 < len(uri) {
			fn(path[:at+1])
		}
		if at >= root {
			fn(path[:at])
		}
	}
}

// Change sends a change that an extension defines. It goes to the subscriptions at this process
// that asked for its method with a filter field of the extension and whose filter matches; a nil
// match matches all. match gets the filter as the client sent it. Change calls match for one
// subscription after another before it returns. A client that reads slowly misses the oldest
// changes.
func (s *Server) Change(c mcp.Notification, match func(p mcp.Principal, filter json.RawMessage) bool) {
	for _, l := range s.subscriptions.listenersOf(c.Method) {
		for _, x := range l.extensions {
			if x.method == c.Method && (match == nil || match(l.principal, x.filter)) {
				l.noteChange(c)
				break
			}
		}
	}
}

// listenerOfTask returns a listener that follows the task, or nil.
func (s *subscriptions) listenerOfTask(id string) *listener {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.byTask[id] {
		return l
	}
	return nil
}

// listenersOfTask returns the listeners that follow the task.
func (s *subscriptions) listenersOfTask(id string) []*listener {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.byTask[id]))
}

// notifyTask notes a change of a task for the listeners that follow it.
func (s *subscriptions) notifyTask(id string, change mcp.Notification) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.byTask[id] {
		l.noteChange(change)
	}
}

func (s *subscriptions) listenersOf(method string) (all []*listener) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.all {
		for _, x := range l.extensions {
			if x.method == method {
				all = append(all, l)
				break
			}
		}
	}
	return all
}
