package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
)

// replicaChanges tells the servers of other replicas what has changed here, and this server what
// has changed there. The first change is told at once, and later ones together after
// changeInterval.
//
// Messages may be lost with a connection. So a replica that is connected again takes everything
// for changed, and if it has told changes since it was connected the last time, the others do so,
// too. A subscription may then hear of a change that it has heard of before.
type replicaChanges struct {
	server   *Server
	network  replica.Network // nil without replicas
	instance string
	leave    func()     // may be called again
	idle     *sync.Cond // of mu: isSending has become false

	mu            sync.Mutex // guards the rest
	stopReceiving func()
	pending       changedThings
	timer         *time.Timer // sends the pending changes; nil if no message is due
	isSending     bool
	sentAt        time.Time // of the last message
	hasSent       bool      // since the last connection
}

const (
	changeInterval = 10 * time.Millisecond
	// maxChanges bounds the changes in a message, and those that wait for a connection. Beyond it,
	// everything counts as changed.
	maxChanges = 1024
)

// changedThings are the parts of a server that have changed.
type changedThings struct {
	all   bool // possibly everything
	lists listSet
	items map[changedItem]mcp.Meta // their lists count as changed for principals that see them
	uris  map[string]bool          // of resources
	tasks map[string]bool          // ids
}

// changedItem identifies an [Item].
type changedItem struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// changeMessage is a message to all replicas.
type changeMessage struct {
	Kind   string        `json:"kind"` // changeKind
	From   string        `json:"from"` // the instance
	Server string        `json:"server"`
	All    bool          `json:"all,omitzero"`
	Lists  listSet       `json:"lists,omitzero"`
	Items  []itemMessage `json:"items,omitzero"`
	URIs   []string      `json:"uris,omitzero"`
	Tasks  []string      `json:"tasks,omitzero"`
}

type itemMessage struct {
	changedItem
	Meta mcp.Meta `json:"meta,omitzero"`
}

const changeKind = "server-change"

// joinReplicas begins to receive the changes of the replicas that share the keys, if there are
// any. If their network does not answer within joinWait, it tries again in the background.
func (r *replicaChanges) joinReplicas(s *Server) {
	r.server, r.instance, r.leave = s, "server-"+rand.Text()[:10], func() {}
	network := replica.Of(s.opts.Keys)
	if network == nil {
		return
	}
	r.network, r.idle = network, sync.NewCond(&r.mu)
	r.stopReceiving = r.watchNetwork()
	ctx, cancel := context.WithCancel(context.Background())
	tried := make(chan struct{})
	go r.keepJoining(ctx, sync.OnceFunc(func() { close(tried) }))
	r.leave = sync.OnceFunc(func() {
		cancel()
		r.sendLast()
		r.stop()
	})
	timer := time.NewTimer(joinWait)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
	}
}

// joinWait is how long a new server waits for its replicas. joinPause is the time between two
// tries.
const (
	joinWait  = 200 * time.Millisecond
	joinPause = 2 * time.Second
)

// watchNetwork calls catchUp when the connection is there again, and looks for orphans when
// replicas are gone. The returned function ends both.
func (r *replicaChanges) watchNetwork() (stop func()) {
	forget, forgetGone := func() {}, func() {}
	if n, ok := r.network.(interface{ OnReconnect(func()) func() }); ok {
		forget = n.OnReconnect(func() { go r.catchUp() })
	}
	if n, ok := r.network.(interface{ OnGone(func()) func() }); ok {
		forgetGone = n.OnGone(r.server.lookForOrphans)
	}
	return func() { forget(); forgetGone() }
}

// keepJoining tries to join the replicas until that succeeds or ctx ends. It calls tried after the
// first try. Close does not wait for it, because a try may take seconds.
func (r *replicaChanges) keepJoining(ctx context.Context, tried func()) {
	defer tried()
	began := time.Now()
	stop, err := r.network.Receive(r.instance, r.receiveChanges)
	for isFirst := true; err != nil; isFirst = false {
		if isFirst {
			r.server.opts.Logger.Error("changes at other replicas are not noticed until the cluster answers", "err", err)
			tried()
		}
		if timeout.Sleep(ctx, joinPause) != nil {
			return
		}
		stop, err = r.network.Receive(r.instance, r.receiveChanges)
	}
	if !r.addStop(ctx, stop) {
		stop()
		return
	}
	if time.Since(began) >= joinWait {
		r.catchUp() // subscriptions may have begun before
	}
}

// addStop makes stop end the reception of changes, too. It returns false if that has ended with
// ctx.
func (r *replicaChanges) addStop(ctx context.Context, stop func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	stopWatching := r.stopReceiving
	r.stopReceiving = func() { stopWatching(); stop() }
	return true
}

// stop ends the reception of changes.
func (r *replicaChanges) stop() {
	r.mu.Lock()
	stop := r.stopReceiving
	r.mu.Unlock()
	stop()
}

// sendLast sends the pending changes of a server that is closed, since its process may end at
// once. The runs of tasks that Close has cancelled may note more of them, which the timer sends.
func (r *replicaChanges) sendLast() {
	r.mu.Lock()
	for r.isSending {
		r.idle.Wait()
	}
	last := r.pending
	r.pending = changedThings{}
	r.mu.Unlock()
	if !last.hasAny() {
		return
	}
	err := r.sendAll(last)
	if err != nil && !last.all && !errors.Is(err, replica.ErrUnreachable) { // it is too large
		err = r.sendAll(changedThings{all: true})
	}
	if err != nil {
		r.server.opts.Logger.Warn("the other replicas could not be told of the last changes", "err", err)
	}
}

// noteLists notes a change of lists. Without items, it concerns every principal.
func (r *replicaChanges) noteLists(lists listSet, items []Item) {
	r.noteChanges(func(c *changedThings) {
		if items == nil {
			c.lists |= lists
			return
		}
		for _, item := range items {
			setIn(&c.items, changedItem{item.Kind, item.Name}, item.Meta)
		}
	})
}

// noteUpdate notes a change of a resource.
func (r *replicaChanges) noteUpdate(uri string) {
	r.noteChanges(func(c *changedThings) { setIn(&c.uris, uri, true) })
}

// noteTask notes a change of a task.
func (r *replicaChanges) noteTask(id string) {
	r.noteChanges(func(c *changedThings) { setIn(&c.tasks, id, true) })
}

func setIn[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// noteChanges adds to the pending changes.
func (r *replicaChanges) noteChanges(add func(*changedThings)) {
	if r.network == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.pending)
	r.pending.limit()
	r.schedule()
}

// schedule lets the pending changes be sent, at the earliest changeInterval after the last ones.
// r.mu is held.
func (r *replicaChanges) schedule() {
	if r.timer == nil && !r.isSending {
		r.timer = time.AfterFunc(max(0, changeInterval-time.Since(r.sentAt)), r.sendChanges)
	}
}

// sendChanges tells the other replicas of the pending changes.
func (r *replicaChanges) sendChanges() {
	r.mu.Lock()
	batch := r.pending
	r.timer, r.pending, r.isSending = nil, changedThings{}, true
	r.mu.Unlock()
	var err error
	if batch.hasAny() {
		err = r.sendAll(batch)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isSending, r.sentAt = false, time.Now()
	r.idle.Broadcast()
	switch {
	case errors.Is(err, replica.ErrUnreachable):
		r.pending.addChanges(batch)
		return // catchUp sends them
	case err != nil && !batch.all: // it is too large
		r.pending = changedThings{all: true}
	case err != nil:
		r.server.opts.Logger.Warn("the other replicas could not be told of changes", "err", err)
	case batch.hasAny():
		r.hasSent = true
	}
	if r.pending.hasAny() {
		r.schedule()
	}
}

func (r *replicaChanges) sendAll(c changedThings) error {
	data, err := json.Marshal(c.encode(r.instance, r.server.opts.Info.Name))
	if err != nil {
		return err
	}
	return r.network.SendAll(data)
}

// catchUp makes up for the messages that may be lost. It is called when the connection is there
// again.
func (r *replicaChanges) catchUp() {
	r.mu.Lock()
	if r.hasSent {
		r.pending, r.hasSent = changedThings{all: true}, false
	}
	r.schedule() // first, because looks at tasks may take long
	r.mu.Unlock()
	r.server.applyChanges(changedThings{all: true})
}

// receiveChanges handles a message of another replica. It implements [replica.Handler].
func (r *replicaChanges) receiveChanges(_ context.Context, data []byte) ([]byte, error) {
	var m changeMessage
	if json.Unmarshal(data, &m) == nil && m.Kind == changeKind && m.From != r.instance && m.Server == r.server.opts.Info.Name {
		r.server.applyChanges(m.decode())
	}
	return nil, nil
}

func (c *changedThings) count() int { return len(c.items) + len(c.uris) + len(c.tasks) }

func (c *changedThings) hasAny() bool { return c.all || c.lists != 0 || c.count() > 0 }

// limit replaces too many changes by one of everything.
func (c *changedThings) limit() {
	if c.all || c.count() > maxChanges {
		*c = changedThings{all: true}
	}
}

// addChanges adds the changes of d.
func (c *changedThings) addChanges(d changedThings) {
	c.all, c.lists = c.all || d.all, c.lists|d.lists
	for item, meta := range d.items {
		setIn(&c.items, item, meta)
	}
	for uri := range d.uris {
		setIn(&c.uris, uri, true)
	}
	for id := range d.tasks {
		setIn(&c.tasks, id, true)
	}
	c.limit()
}

func (c *changedThings) encode(instance, server string) changeMessage {
	m := changeMessage{Kind: changeKind, From: instance, Server: server, All: c.all, Lists: c.lists,
		URIs: slices.Collect(maps.Keys(c.uris)), Tasks: slices.Collect(maps.Keys(c.tasks))}
	for item, meta := range c.items {
		m.Items = append(m.Items, itemMessage{item, meta})
	}
	return m
}

func (m *changeMessage) decode() changedThings {
	c := changedThings{all: m.All, lists: m.Lists}
	for _, item := range m.Items {
		setIn(&c.items, item.changedItem, item.Meta)
	}
	for _, uri := range m.URIs {
		setIn(&c.uris, uri, true)
	}
	for _, id := range m.Tasks {
		setIn(&c.tasks, id, true)
	}
	return c
}

// applyChanges notifies the subscriptions at this replica of changes at others, and ends the runs
// of tasks that others have ended.
func (s *Server) applyChanges(c changedThings) {
	if c.all {
		c = s.subscriptions.everything()
		for _, id := range s.tasks.runningIDs() {
			setIn(&c.tasks, id, true)
		}
	}
	s.subscriptions.noteLists(c.lists, nil)
	if len(c.items) > 0 {
		s.subscriptions.noteLists(0, s.itemsOf(c.items))
	}
	for uri := range c.uris {
		s.subscriptions.notifyUpdated(uri, s.opts.Visible != nil)
	}
	s.lookAtTasks(slices.Collect(maps.Keys(c.tasks)))
}

// itemsOf returns the items of this server, and for those that it does not have what
// [Options].Visible sees of them.
func (s *Server) itemsOf(changed map[changedItem]mcp.Meta) (items []Item) {
	for c, meta := range changed {
		item, ok := s.catalog.lookupItem(c.Kind, []byte(c.Name))
		if !ok {
			item = Item{Kind: c.Kind, Name: c.Name, Meta: meta}
		}
		items = append(items, item)
	}
	return items
}
