package linediff

import "slices"

// Hunk is a place where one or both of two texts differ from their common base.
type Hunk struct {
	Base, Mine, Theirs []string
	// IsConflict: both texts changed the place, in different ways.
	IsConflict bool

	from, to int // in the base
}

// Merge returns the places where mine, theirs or both differ from base, in order, and the merged
// text. If a hunk is a conflict, merged has the lines of mine there.
func Merge(base, mine, theirs []string) (hunks []Hunk, merged []string) {
	ours, others := FindChanges(base, mine), FindChanges(base, theirs)
	var shiftOurs, shiftOthers int // of lines behind the changes so far
	for len(ours) > 0 || len(others) > 0 {
		h, nOurs, nOthers := nextHunk(ours, others)
		endOurs, endOthers := shiftOurs+growth(ours[:nOurs]), shiftOthers+growth(others[:nOthers])
		h.Base = base[h.from:h.to]
		h.Mine = mine[h.from+shiftOurs : h.to+endOurs]
		h.Theirs = theirs[h.from+shiftOthers : h.to+endOthers]
		h.IsConflict = nOurs > 0 && nOthers > 0 && !slices.Equal(h.Mine, h.Theirs)
		hunks = append(hunks, h)
		ours, others, shiftOurs, shiftOthers = ours[nOurs:], others[nOthers:], endOurs, endOthers
	}
	at := 0
	for _, h := range hunks {
		merged = append(merged, base[at:h.from]...)
		if slices.Equal(h.Mine, h.Base) {
			merged = append(merged, h.Theirs...)
		} else {
			merged = append(merged, h.Mine...)
		}
		at = h.to
	}
	return hunks, append(merged, base[at:]...)
}

// growth returns by how many lines changes lengthen the text.
func growth(all []Change) (n int) {
	for _, c := range all {
		n += c.NewEnd - c.New - c.OldEnd + c.Old
	}
	return n
}

// nextHunk returns the range of the first hunk, and how many changes of either side belong to it.
// Changes that touch each other belong together.
func nextHunk(ours, others []Change) (h Hunk, nOurs, nOthers int) {
	switch {
	case len(others) == 0 || len(ours) > 0 && ours[0].Old <= others[0].Old:
		h.from, h.to, nOurs = ours[0].Old, ours[0].OldEnd, 1
	default:
		h.from, h.to, nOthers = others[0].Old, others[0].OldEnd, 1
	}
	for {
		switch {
		case nOurs < len(ours) && ours[nOurs].Old <= h.to:
			h.to = max(h.to, ours[nOurs].OldEnd)
			nOurs++
		case nOthers < len(others) && others[nOthers].Old <= h.to:
			h.to = max(h.to, others[nOthers].OldEnd)
			nOthers++
		default:
			return h, nOurs, nOthers
		}
	}
}
