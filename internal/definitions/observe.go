package definitions

import (
	"slices"
	"time"
)

// observe adds definitions that a server has given. Those with a new name are accepted. Of several
// with the same kind and name the first counts. isStart says that the server has just started, and
// that these are all of its definitions. modified is true if the record has changed.
func (r *Record) observe(seen []Definition, isStart bool, now time.Time) (modified bool) {
	if r.broken {
		return false
	}
	free := maxAllTexts - r.textSize()
	changed := false
	done := map[string]bool{}
	for _, d := range seen {
		key := d.key()
		if done[key] {
			continue
		}
		done[key] = true
		e := r.Entries[key]
		switch {
		case e == nil && len(r.Entries) >= maxEntries:
		case e == nil:
			r.Entries[key] = &entry{Kind: d.kind, Name: d.name, First: now, Accepted: d.newVersion(now, &free)}
			modified = true
		case e.last().Digest != d.digest:
			r.recordChange(e, d, now, &free)
			modified, changed = true, true
		}
	}
	switch {
	case isStart && changed:
		r.ChangedStarts++
	case isStart && r.ChangedStarts > 0:
		r.ChangedStarts, modified = 0, true
	}
	return modified
}

// addNew accepts the definitions with a new name. modified is true if the record has changed.
func (r *Record) addNew(seen []Definition, now time.Time) (modified bool) {
	unknown := slices.DeleteFunc(slices.Clone(seen), func(d Definition) bool { return r.Entries[d.key()] != nil })
	return len(unknown) > 0 && r.observe(unknown, false, now)
}

// newVersion returns the definition as seen now. The text is left out if the record has no room for
// it; free is the rest of maxAllTexts.
func (d Definition) newVersion(now time.Time, free *int) version {
	v := version{Digest: d.digest, Time: now, Text: d.compactText()}
	if len(v.Text) > min(maxText, *free) {
		v.Text = nil
	}
	*free -= len(v.Text)
	return v
}

// recordChange makes d the current definition of an entry.
func (r *Record) recordChange(e *entry, d Definition, now time.Time, free *int) {
	old := e.last()
	r.History = append(r.History, Change{Kind: e.Kind, Name: e.Name, Digest: d.digest, Time: now, Lines: Compare(old.Text, d.compactText())})
	r.History = r.History[max(0, len(r.History)-maxHistory):]
	if e.Current != nil {
		*free += len(e.Current.Text)
		e.Current = nil
	}
	if d.digest != e.Accepted.Digest {
		e.Current = new(d.newVersion(now, free))
	}
}

// accept makes a change the accepted definition. A change that the record does not know is accepted
// by its digest. modified is true if the record has changed.
func (r *Record) accept(c Change) (modified bool) {
	key := keyOf(c.Kind, c.Name)
	e := r.Entries[key]
	switch {
	case e == nil && len(r.Entries) >= maxEntries:
		return false
	case e == nil:
		r.Entries[key] = &entry{Kind: c.Kind, Name: c.Name, First: c.Time, Accepted: version{Digest: c.Digest, Time: c.Time}}
		return true
	case e.Accepted.Digest == c.Digest:
		return false
	case e.Current != nil && e.Current.Digest == c.Digest:
		e.Accepted, e.Current = *e.Current, nil
	default:
		e.Accepted = version{Digest: c.Digest, Time: c.Time}
	}
	return true
}
