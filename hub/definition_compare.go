package hub

import (
	"slices"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

func init() { hublink.CompareDefinitions = func(u any) { u.(*Upstream).compareDefinitions() } }

// compareDefinitions compares the current lists with the accepted definitions again, and offers
// what was accepted meanwhile.
func (u *Upstream) compareDefinitions() {
	for {
		u.mu.Lock()
		old, d := u.lists, u.def
		u.mu.Unlock()
		if old == nil {
			return
		}
		now := *old
		now.compareAgain(&d)
		if u.replaceChanges(old, &now) {
			return
		}
	}
}

// replaceChanges takes over the changes of now if the lists are still old. It reports false if they
// are not.
func (u *Upstream) replaceChanges(old, now *serverLists) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lists != old {
		return false
	}
	if now.isRecorded != old.isRecorded || !slices.EqualFunc(now.changes, old.changes, isEqualChange) {
		u.lists = now.applyRules(u, &u.def)
		u.lists.warnOfChanges(u, old)
		u.announceChanges(u.lists.changedKinds(old))
	}
	u.recordLater()
	return true
}

// isEqualChange reports whether two changes are shown in the same way.
func isEqualChange(a, b client.DefinitionChange) bool {
	return isSameChange(a, b) && slices.Equal(a.Lines, b.Lines)
}

// recordLater tries again to record definitions whose log could not be used, until it can. u.mu is
// held.
func (u *Upstream) recordLater() {
	if u.isRecording || u.lists == nil || u.lists.isRecorded || u.state.Status == Removed {
		return
	}
	u.isRecording = true
	u.connWork.Go(func() {
		o := &u.hub.opts
		for wait := o.MinBackoff; timeout.Sleep(u.lifeCtx, wait) == nil && !u.recordNow(); {
			wait = min(2*wait, o.MaxBackoff)
		}
	})
}

// recordNow is one try of recordLater. It reports whether that was the last one.
func (u *Upstream) recordNow() bool {
	u.compareDefinitions()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.isRecording = u.lists != nil && !u.lists.isRecorded
	return !u.isRecording
}

// preparedLists are the lists of an upstream under its next definition.
type preparedLists struct {
	base  *serverLists // the lists that they were made from
	lists *serverLists
}

// prepareLists returns the lists for a definition, which may be another one with the same name. The
// caller holds no lock, because the log may wait for a network.
func (u *Upstream) prepareLists(d *Definition) preparedLists {
	u.mu.Lock()
	old, isSame := u.lists, u.def.Fingerprint == d.Fingerprint
	u.mu.Unlock()
	switch {
	case !isSame:
		return preparedLists{old, u.loadLists(d)}
	case old == nil:
		return preparedLists{}
	}
	now := *old
	now.compareAgain(d)
	return preparedLists{old, &now}
}
