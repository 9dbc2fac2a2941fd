package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/config"
)

type hubCatalog = catalog.Catalog[*hub.Upstream, hub.State]

// Limits of [Moments]: the number of moments, the rows of servers in all of them, and the different
// catalogs and configurations. Moments share unchanged parts. Changes within momentInterval are one
// moment.
const (
	maxMoments       = 500
	maxMomentServers = 20_000
	maxMomentParts   = 100
	momentInterval   = statusInterval
)

// moment is the state that the console showed since a time.
type moment struct {
	since   time.Time
	status  Status
	asks    AskList
	catalog *hubCatalog
	config  *config.Set // nil without a configuration
}

// Moments keep what the console showed lately: the servers, the open questions, the offered items
// and the configuration. With ?at=TIME, the console shows them as of then. The zero value is empty.
// It is safe for concurrent use.
type Moments struct {
	mu      sync.Mutex
	kept    []*moment // the oldest first
	servers int       // rows in the statuses of kept
	parts   int       // moments with another catalog or configuration than the one before
}

// Follow keeps the moments of a running dowel until ctx ends.
func (m *Moments) Follow(ctx context.Context, d Running) {
	changes, loaded := followHub(d.Hub.Events(ctx)), d.configSet()
	_, asked := d.asks().countOpen()
	poll := time.NewTicker(configInterval)
	defer poll.Stop()
	last := m.keep(d, time.Now())
	for {
		var since time.Time
		select {
		case <-ctx.Done():
			return
		case <-changes.due:
			changed, _, first := changes.take()
			if !changed {
				continue
			}
			since = first
		case <-asked:
			_, asked = d.asks().countOpen()
			since = time.Now()
		case <-poll.C:
			if d.configSet() == loaded {
				continue
			}
			loaded = d.configSet()
			since = loaded.LoadedAt
		}
		if since.Before(last) { // the moment before shows the change
			since = last
		}
		last = m.keep(d, since)
		select {
		case <-time.After(momentInterval):
		case <-ctx.Done():
		}
	}
}

// keep adds the present state, which is one since a time. It returns the time before which the
// state shows every change.
func (m *Moments) keep(d Running, since time.Time) (taken time.Time) {
	taken = time.Now()
	now := &moment{since: since, status: d.Controller.Status(), catalog: d.Hub.Catalog(), config: d.configSet()}
	if asks := d.asks(); asks != nil {
		now.asks = asks.List()
		for i := range now.asks.Asks { // they hold requests and results of clients
			ask := &now.asks.Asks[i]
			ask.rules, ask.decided, ask.deliver = nil, nil, nil
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addMoment(now)
	return taken
}

// addMoment adds a moment, and drops the oldest ones down to the limits. m.mu is held.
func (m *Moments) addMoment(now *moment) {
	n := len(m.kept)
	if n > 0 && now.since.Before(m.kept[n-1].since) {
		now.since = m.kept[n-1].since // times do not decrease
	}
	if n == 0 || m.kept[n-1].differsFrom(now) {
		m.parts++
	}
	m.servers += len(now.status.Servers)
	m.kept = append(m.kept, now)
	for len(m.kept) > 1 && (len(m.kept) > maxMoments || m.servers > maxMomentServers || m.parts > maxMomentParts) {
		oldest := m.kept[0]
		m.servers -= len(oldest.status.Servers)
		if oldest.differsFrom(m.kept[1]) {
			m.parts--
		}
		m.kept[0] = nil
		m.kept = m.kept[1:]
	}
}

// differsFrom reports whether two moments have different catalogs or configurations.
func (m *moment) differsFrom(other *moment) bool {
	return m.catalog != other.catalog || m.config != other.config
}

var errNoMoments = errors.New("earlier states are not kept here")

// findMoment returns the moment that contains a time.
func (m *Moments) findMoment(t time.Time) (*moment, error) {
	if m == nil {
		return nil, errNoMoments
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := sort.Search(len(m.kept), func(i int) bool { return m.kept[i].since.After(t) })
	switch {
	case len(m.kept) == 0:
		return nil, errNoMoments
	case i == 0:
		return nil, fmt.Errorf("the oldest state that is kept is the one of %s", m.kept[0].since.Format(time.DateTime))
	}
	return m.kept[i-1], nil
}

// times returns the times at which something has changed, the oldest first.
func (m *Moments) times() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]time.Time, len(m.kept))
	for i, k := range m.kept {
		all[i] = k.since
	}
	return all
}

// timeOf returns the time that a request names with ?at, or the zero time for the present.
func timeOf(r *http.Request) (time.Time, error) {
	at := r.URL.Query().Get("at")
	if at == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return time.Time{}, fmt.Errorf("at=%s: want a time such as 2026-07-28T12:00:00.5Z", at)
	}
	return t, nil
}

// momentOf returns the moment that a request names with ?at, or nil for the present.
func (d Running) momentOf(r *http.Request) (*moment, error) {
	t, err := timeOf(r)
	if err != nil || t.IsZero() {
		return nil, err
	}
	return d.Moments.findMoment(t)
}

// serveClients answers with the clients of the gateway: now, or as the journal knew them at a time.
func (d Running) serveClients(w http.ResponseWriter, r *http.Request) {
	t, err := timeOf(r)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	writeJSON(w, clientsOf(d.Recorder, t))
}

// serveState returns a handler that answers with a part of the state: now, or as of a moment.
func (d Running) serveState(now func() any, then func(*moment) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m, err := d.momentOf(r)
		switch {
		case err != nil:
			writeOutcome(w, err)
		case m != nil:
			writeJSON(w, then(m))
		default:
			writeJSON(w, now())
		}
	}
}

// catalogOf returns the items that a request is about: the present items, or the items at a moment.
func (d Running) catalogOf(r *http.Request) (*hubCatalog, error) {
	m, err := d.momentOf(r)
	if err != nil || m == nil {
		return d.Hub.Catalog(), err
	}
	return m.catalog, nil
}
