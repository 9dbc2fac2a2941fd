package linediff_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/linediff"
)

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, " ")
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ base, mine, theirs, merged, conflict string }{
		{"a b c", "a b c", "a b c", "a b c", ""},
		{"a b c", "a B c", "a b c", "a B c", ""},
		{"a b c", "a b c", "a B c", "a B c", ""},
		{"a b c", "a B c", "a B c", "a B c", ""},
		{"a b c d e", "A b c d e", "a b c d E", "A b c d E", ""},
		{"a b c", "a x c", "a y c", "a x c", "b|x|y"},
		{"a b c d", "a c d", "a b c D", "a c D", ""},
		{"a b c d", "a d", "a b C d", "a d", "b c||b C"},
		{"a b c d e", "a c d e", "a b c d E", "a c d E", ""},
		{"a b", "a x b", "a y b", "a x b", "|x|y"},
		{"", "x", "y", "x", "|x|y"},
		{"a b c", "", "a b c d", "", "a b c||a b c d"},
	} {
		hunks, merged := linediff.Merge(lines(tt.base), lines(tt.mine), lines(tt.theirs))
		var conflicts []string
		for _, h := range hunks {
			if h.IsConflict {
				conflicts = append(conflicts, strings.Join(h.Base, " ")+"|"+strings.Join(h.Mine, " ")+"|"+strings.Join(h.Theirs, " "))
			}
		}
		if got, found := strings.Join(merged, " "), strings.Join(conflicts, " / "); found != tt.conflict || got != tt.merged {
			t.Errorf("%q: mine %q, theirs %q: merged %q, conflicts %q, want %q and %q", tt.base, tt.mine, tt.theirs, got, found, tt.merged, tt.conflict)
		}
	}
}

// Whatever the changes are, a side without changes takes the other side, merging is symmetric apart
// from conflicts, and each hunk shows its part of the three texts.
func TestMergeOfRandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() (all []string) {
		for range r.IntN(10) {
			all = append(all, string(rune('a'+r.IntN(4))))
		}
		return all
	}
	for range 5000 {
		base, mine, theirs := text(), text(), text()
		if _, merged := linediff.Merge(base, mine, base); !slices.Equal(merged, mine) {
			t.Fatalf("%v to %v: %v", base, mine, merged)
		}
		if _, merged := linediff.Merge(base, base, theirs); !slices.Equal(merged, theirs) {
			t.Fatalf("%v to %v: %v", base, theirs, merged)
		}
		hunks, merged := linediff.Merge(base, mine, theirs)
		_, swapped := linediff.Merge(base, theirs, mine)
		if !slices.ContainsFunc(hunks, func(h linediff.Hunk) bool { return h.IsConflict }) && !slices.Equal(merged, swapped) {
			t.Fatalf("%v, %v, %v: %v and %v", base, mine, theirs, merged, swapped)
		}
		n := len(base)
		for _, h := range hunks {
			n += len(h.Mine) - len(h.Base)
		}
		if n != len(mine) {
			t.Fatalf("%v, %v, %v: the hunks have other lines than mine: %+v", base, mine, theirs, hunks)
		}
	}
}
