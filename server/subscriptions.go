package server

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// subscriptions holds the open subscriptions.
type subscriptions struct {
	mu    sync.RWMutex
	all   map[*listener]struct{}
	byURI map[string]map[*listener]struct{}

	closed   atomic.Bool   // by Server.Close
	interval time.Duration // least time between notifications of list changes
}

func (s *subscriptions) init(interval time.Duration) {
	s.interval = interval
	s.all, s.byURI = map[*listener]struct{}{}, map[string]map[*listener]struct{}{}
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
	for _, uri := range l.uris {
		if s.byURI[uri] == nil {
			s.byURI[uri] = map[*listener]struct{}{}
		}
		s.byURI[uri][l] = struct{}{}
	}
}

func (s *subscriptions) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
	for _, uri := range l.uris {
		delete(s.byURI[uri], l)
		if len(s.byURI[uri]) == 0 {
			delete(s.byURI, uri)
		}
	}
}

// notifyListChanged notes a change of the items' lists. If isFiltered, only listeners that may see
// one of the items are notified.
func (s *subscriptions) notifyListChanged(isFiltered bool, items []Item) {
	now := time.Now()
	var changed listSet
	for _, item := range items {
		changed |= listOfKind(item.Kind)
	}
	if changed == 0 {
		return
	}
	if !isFiltered {
		items = nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.all {
		l.noteListChange(changed, items, now, s.interval)
	}
}

// Updated notifies the clients that subscribed to the resource, or to a resource above it in the
// hierarchy of URI paths, with or without a trailing slash. It does not wait for them. Several
// changes of one resource that a client has not received yet become one.
func (s *Server) Updated(uri string) { s.subscriptions.notifyUpdated(uri) }

func (s *subscriptions) notifyUpdated(uri string) {
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
			l.noteUpdate(u, subscribed)
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

// Change sends a change that an extension defines. It goes to the subscriptions that asked for its
// method with a filter field of the extension and whose filter matches; a nil match matches all.
// match gets the filter as the client sent it. Change calls match for one subscription after
// another before it returns. A client that reads slowly misses the oldest changes.
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
