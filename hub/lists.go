package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const kinds = catalog.Kinds

// Bounds of a server's lists.
const (
	maxPages = 1000
	maxItems = 20000 // of one kind
)

// serverLists are the lists of one upstream: raw as the server sent them, and as items under the
// definition's rules. It is immutable once stored.
type serverLists struct {
	raw          [kinds][]json.RawMessage // as the server sent them
	instructions string                   // the server's instructions for models
	offered      catalog.Lists[*Upstream]
	quarantined  []catalog.Quarantined
	problems     [kinds]string             // why a list was not read to its end, or empty
	changes      []client.DefinitionChange // definitions that are not accepted
	isRecorded   bool                      // the log has the definitions
}

// applyRules returns a copy with items made from the raw lists, under the rules of d.
func (o *serverLists) applyRules(u *Upstream, d *Definition) *serverLists {
	applied := &serverLists{raw: o.raw, instructions: o.instructions, problems: o.problems, changes: o.changes, isRecorded: o.isRecorded}
	applied.offered.Caches = o.offered.Caches
	for k := range kinds {
		seen := map[string]bool{}
		for _, raw := range o.raw[k] {
			item, reason := catalog.NewItem(u, k, raw, d.Tools.changeTool)
			switch {
			case reason == "" && item.Definition != nil && seen[item.LocalName]:
				reason = "another one has that name: " + item.LocalName
			case reason == "" && item.Definition == nil:
				continue
			}
			seen[item.LocalName] = true
			if change := o.changeOf(k, item.Name); change != nil && reason == "" && d.HoldChanged != "" {
				reason = heldReason(change, d.HoldChanged)
			}
			if reason != "" {
				applied.quarantined = append(applied.quarantined, catalog.Quarantined{Kind: k, Name: item.Name, LocalName: item.LocalName, Reason: reason})
				continue
			}
			applied.offered.Items[k] = append(applied.offered.Items[k], item)
		}
		if o.problems[k] != "" {
			applied.quarantined = append(applied.quarantined, catalog.Quarantined{Kind: k, Name: k.ListMethod(), Reason: o.problems[k]})
		}
	}
	return applied
}

// readLists reads all lists of the server and stores them. It keeps the readable part of a list
// that fails, with the problem. It returns an error only if the connection is lost or ctx ends.
func (u *Upstream) readLists(ctx context.Context, conn *connection) error {
	o := &serverLists{instructions: conn.client.Server().Instructions}
	var wg sync.WaitGroup
	var errs [kinds]error
	for k := range kinds {
		wg.Go(func() { errs[k] = o.readListInTime(ctx, conn, k) })
	}
	wg.Wait()
	for k, err := range errs {
		if err == nil {
			continue
		}
		if isConnectionLost(err) || ctx.Err() != nil {
			return err
		}
		o.problems[k] = err.Error()
	}
	u.storeLists(ctx, conn, o, true)
	return nil
}

// isConnectionLost reports whether an error means that the connection does not work any more.
func isConnectionLost(err error) bool {
	return errors.Is(err, mcp.ErrConnection) || errors.Is(err, mcp.ErrClosed)
}

// listTimeout limits the reading of one list, so that a server that never answers one list request
// can still be used. Only tests change it.
var listTimeout = 20 * time.Second

// readListInTime is readList with listTimeout.
func (o *serverLists) readListInTime(ctx context.Context, conn *connection, k catalog.Kind) error {
	bounded, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("%s: it was not answered within %v", k.ListMethod(), listTimeout))
	defer cancel()
	return o.readList(bounded, conn, k)
}

// readList reads all pages of one list into raw.
func (o *serverLists) readList(ctx context.Context, conn *connection, k catalog.Kind) error {
	if !hasList(conn.client.Server().Capabilities, k) {
		return nil
	}
	cursor, seen := json.RawMessage(nil), map[string]bool{}
	for range maxPages {
		params := json.RawMessage(nil)
		if cursor != nil {
			params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
		}
		resp, err := conn.client.RoundTrip(ctx, &mcp.Request{Method: k.ListMethod(), Params: params})
		if isMethodNotFound(err) && k == catalog.Template {
			return nil
		}
		if err != nil {
			return err
		}
		if resp.Type != mcp.ResultComplete {
			return fmt.Errorf("%s: its result is of type %s", k.ListMethod(), resp.Type)
		}
		if o.raw[k] == nil {
			o.offered.Caches[k] = resp.Cache
		}
		o.offered.Caches[k] = catalog.NarrowestCache(o.offered.Caches[k], resp.Cache)
		for it := rawjson.Array(rawjson.Lookup(resp.Raw, k.ListKey())); it.Next(); {
			o.raw[k] = append(o.raw[k], bytes.Clone(it.Value))
		}
		cursor = rawjson.Lookup(resp.Raw, "nextCursor")
		switch {
		case cursor == nil || rawjson.IsNull(cursor):
			return nil
		case seen[string(cursor)]:
			return fmt.Errorf("%s: the cursor %s comes again and again", k.ListMethod(), cursor)
		case len(o.raw[k]) > maxItems:
			return fmt.Errorf("%s: there are more than %d", k.ListMethod(), maxItems)
		}
		cursor = bytes.Clone(cursor)
		seen[string(cursor)] = true
	}
	return fmt.Errorf("%s: there are more than %d pages", k.ListMethod(), maxPages)
}

// hasList reports whether the server declares a list of the kind.
func hasList(c mcp.ServerCapabilities, k catalog.Kind) bool {
	switch k {
	case catalog.Tool:
		return c.Tools != nil
	case catalog.Prompt:
		return c.Prompts != nil
	}
	return c.Resources != nil
}

// isMethodNotFound reports whether a server lacks a method. Many servers with resources lack the
// list of templates.
func isMethodNotFound(err error) bool {
	var answered *mcp.Error
	return errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound
}

// storeLists makes o the upstream's lists, and saves them for later runs. isStart says that they
// are the first ones of the connection.
func (u *Upstream) storeLists(ctx context.Context, conn *connection, o *serverLists, isStart bool) {
	u.saveLists(conn.fingerprint, o)
	u.mu.Lock()
	old, d := u.lists, u.def
	u.mu.Unlock()
	if !isStart && old != nil && old.isRecorded && o.hasDefinitionsOf(old) {
		o.changes, o.isRecorded = old.changes, true
	} else {
		o.findChanges(u, &d, isStart)
	}
	for !u.replaceLists(ctx, old, o) { // definitions were accepted meanwhile
		u.mu.Lock()
		old, d = u.lists, u.def
		u.mu.Unlock()
		o.compareAgain(&d)
	}
}

// hasDefinitionsOf reports whether the server has sent the same definitions in both lists.
func (o *serverLists) hasDefinitionsOf(other *serverLists) bool {
	for k := range comparedKinds {
		if !slices.EqualFunc(o.raw[k], other.raw[k], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			return false
		}
	}
	return o.instructions == other.instructions
}

// replaceLists makes o the upstream's lists instead of old. It reports false if the lists are not
// old any more.
func (u *Upstream) replaceLists(ctx context.Context, old, o *serverLists) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil { // the server is restarting
		return true
	}
	if u.lists != old {
		return false
	}
	u.listsReadAt = time.Now()
	u.lists = o.applyRules(u, &u.def)
	u.lists.warnOfChanges(u, old)
	for _, q := range u.lists.quarantined {
		u.hub.opts.Logger.Warn("a broken item is not offered", "server", u.name, q.Kind.String(), q.Name, "why", q.Reason)
	}
	u.announceChanges(u.lists.changedKinds(old))
	u.recordLater()
	return true
}

// changedKinds returns the kinds with different items in the two lists. nil has no items.
func (o *serverLists) changedKinds(other *serverLists) (changed []catalog.Kind) {
	none := &serverLists{}
	same := func(a, b *item) bool { return bytes.Equal(a.Definition, b.Definition) }
	for k := range kinds {
		if !slices.EqualFunc(cmp.Or(o, none).offered.Items[k], cmp.Or(other, none).offered.Items[k], same) {
			changed = append(changed, k)
		}
	}
	return changed
}

// reapplyRules applies changed rules, and definitions accepted meanwhile, to the current lists. It
// reports whether others than the prepared lists are current, so that they must be compared again.
// u.mu is held.
func (u *Upstream) reapplyRules(p preparedLists) (isLate bool) {
	old := u.lists
	if old == nil {
		return false
	}
	now := *old
	if isLate = p.base != old; !isLate {
		now.changes, now.isRecorded = p.lists.changes, p.lists.isRecorded
	}
	u.lists = now.applyRules(u, &u.def)
	u.announceChanges(u.lists.changedKinds(old))
	u.recordLater()
	return isLate
}

// nonEmptyKinds returns the kinds of which the lists have items. nil has none.
func (o *serverLists) nonEmptyKinds() (some []catalog.Kind) {
	for k := range kinds {
		if o != nil && len(o.offered.Items[k]) > 0 {
			some = append(some, k)
		}
	}
	return some
}

// announceChanges publishes that items of these kinds have changed. u.mu is held.
func (u *Upstream) announceChanges(changed []catalog.Kind) {
	u.hub.catalog.invalidate()
	if len(changed) == 0 {
		return
	}
	var methods []string
	for _, k := range changed {
		methods = append(methods, k.ChangedMethod())
	}
	u.hub.bus.publish(Event{Upstream: u.name, Kind: CatalogChanged, Changed: slices.Compact(methods)})
}

// savedLists is the stored form of serverLists.
type savedLists struct {
	Raw          [kinds][]json.RawMessage `json:"told"`
	Cache        [kinds]mcp.Cache         `json:"cache"`
	Instructions string                   `json:"instructions,omitzero"`
}

// loadLists returns the lists that an earlier run has saved for a definition, or nil. The caller
// holds no lock.
func (u *Upstream) loadLists(d *Definition) *serverLists {
	if u.hub.opts.Cache == nil || d.Fingerprint == "" {
		return nil
	}
	raw, ok := u.hub.opts.Cache.Load(u.name, d.Fingerprint)
	var m savedLists
	if !ok || json.Unmarshal(raw, &m) != nil {
		return nil // unreadable lists count as none
	}
	o := &serverLists{raw: m.Raw, instructions: m.Instructions, offered: catalog.Lists[*Upstream]{Caches: m.Cache}}
	o.findChanges(u, d, false)
	return o.applyRules(u, d)
}

// saveLists saves the lists of a server with that fingerprint for later runs. Incomplete lists are
// not saved.
func (u *Upstream) saveLists(fingerprint string, o *serverLists) {
	if u.hub.opts.Cache == nil || fingerprint == "" || o.problems != [kinds]string{} {
		return
	}
	raw, err := json.Marshal(savedLists{o.raw, o.offered.Caches, o.instructions})
	if err == nil {
		u.hub.opts.Cache.Save(u.name, fingerprint, raw)
	}
}
