package hub

import (
	"slices"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// comparedKinds are the lists with definitions that are compared: resources are content, not
// definitions.
var comparedKinds = map[catalog.Kind]struct{ kind, key string }{
	catalog.Tool:     {definitions.Tool, "name"},
	catalog.Prompt:   {definitions.Prompt, "name"},
	catalog.Template: {definitions.Template, "uriTemplate"},
}

// compared returns the definitions in the lists, and the instructions.
func (o *serverLists) compared() (all []definitions.Definition) {
	for k, c := range comparedKinds {
		for _, raw := range o.raw[k] {
			if name, ok := rawjson.String(rawjson.Lookup(raw, c.key)); ok && name != "" {
				all = append(all, definitions.New(c.kind, name, raw))
			}
		}
	}
	if o.instructions != "" {
		all = append(all, definitions.New(definitions.Instructions, "", rawjson.AppendString(nil, o.instructions)))
	}
	return all
}

// findChanges records the definitions in the log of d, and sets the changes: definitions that are
// not accepted. isStart says that the server has just started. Without a log nothing is compared.
// The log may wait for a network, so the caller holds no lock.
func (o *serverLists) findChanges(u *Upstream, d *Definition, isStart bool) {
	o.changes, o.isRecorded = nil, true
	if d.Log == nil {
		return
	}
	seen := o.compared()
	record, err := definitions.Observe(d.Log, seen, isStart)
	if err != nil {
		u.hub.opts.Logger.Warn("definitions are not recorded", "server", u.name, "err", err)
	}
	o.changes, o.isRecorded = record.CheckAll(seen), err == nil
}

// compareAgain sets the changes anew, because definitions may have been accepted meanwhile.
// Definitions that are not recorded yet are recorded, and others are only compared. The caller
// holds no lock.
func (o *serverLists) compareAgain(d *Definition) {
	if d.Log == nil {
		o.changes, o.isRecorded = nil, true
		return
	}
	seen, isMissing := o.compared(), !o.isRecorded
	var record *definitions.Record
	var err error
	if isMissing {
		record, err = definitions.Observe(d.Log, seen, false)
	} else {
		record, err = definitions.Review(d.Log, seen)
	}
	if o.isRecorded = err == nil; err != nil && !isMissing {
		return // the earlier changes still count
	}
	old := o.changes
	o.changes = record.CheckAll(seen)
	for i := range o.changes {
		c := &o.changes[i]
		if at := slices.IndexFunc(old, func(was client.DefinitionChange) bool { return isSameChange(was, *c) }); at >= 0 {
			c.Time = old[at].Time
		}
	}
}

// isSameChange reports whether two changes are about the same new definition.
func isSameChange(a, b client.DefinitionChange) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.Digest == b.Digest
}

// changeOf returns the change of an item, or nil.
func (o *serverLists) changeOf(k catalog.Kind, name string) *client.DefinitionChange {
	for i := range o.changes {
		if c := &o.changes[i]; c.Kind == comparedKinds[k].kind && c.Name == name {
			return c
		}
	}
	return nil
}

// heldReason says why an item with that change is not offered.
func heldReason(c *client.DefinitionChange, howToAccept string) string {
	return "its definition has changed (" + c.Time.Local().Format("2006-01-02 15:04") + "): " + howToAccept
}

// warnOfChanges logs the changes that old lacks. old may be nil.
func (o *serverLists) warnOfChanges(u *Upstream, old *serverLists) {
	for _, c := range o.changes {
		known := old != nil && slices.ContainsFunc(old.changes, func(was client.DefinitionChange) bool {
			return isSameChange(was, c)
		})
		if !known {
			u.hub.opts.Logger.Warn("a definition has changed", "server", u.name, c.Kind, c.Name, "differences", len(c.Lines))
		}
	}
}

// ChangedDefinitions returns the server's definitions that differ from the accepted ones, sorted by
// kind and name. It is empty without a [Definition].Log. A change that [client.AcceptDefinitions]
// has accepted is left out at once.
func (u *Upstream) ChangedDefinitions() []client.DefinitionChange {
	if u.currentChanges() == nil {
		return nil
	}
	u.compareDefinitions()
	return u.currentChanges()
}

// currentChanges returns the changes as at the last comparison.
func (u *Upstream) currentChanges() []client.DefinitionChange {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lists == nil || len(u.lists.changes) == 0 {
		return nil
	}
	return slices.Clone(u.lists.changes)
}

// holdsInstructions reports whether changed instructions are withheld. u.mu is held.
func (u *Upstream) holdsInstructions() bool {
	return u.def.HoldChanged != "" && u.lists != nil && slices.ContainsFunc(u.lists.changes, func(c client.DefinitionChange) bool {
		return c.Kind == definitions.Instructions
	})
}
