package agentcmd

import (
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/internal/callmark"
	"github.com/dowel-mcp/dowel/internal/journal"
)

// Frames of marked calls alone are shown, whichever leg has the mark.
func TestCallMarks(t *testing.T) {
	var m callMarks
	first, second := callmark.From(m.markCall(t.Context())), callmark.From(m.markCall(t.Context()))
	if first == second || first == "" || len(first) > callmark.MaxLength {
		t.Fatalf("the marks are %q and %q", first, second)
	}
	var shown []uint64
	show := m.filterFrames(func(f *journal.Frame) { shown = append(shown, f.Conn) })
	for i, f := range []journal.Frame{
		{Leg: journal.ClientLeg, Operation: 1, Mark: first},
		{Leg: journal.ServerLeg, Operation: 1}, // 1
		{Leg: journal.ClientLeg, Operation: 2, Mark: "another client's"},
		{Leg: journal.ServerLeg, Operation: 2},
		{Leg: journal.ServerLeg},
		{Leg: journal.ServerLeg, Operation: 3, Mark: second}, // 5
		{Leg: journal.ServerLeg, Operation: 1},               // 6
		{Leg: journal.ClientLeg, Operation: 3},
	} {
		f.Conn = uint64(i)
		show(&f)
	}
	if want := []uint64{1, 5, 6}; !slices.Equal(shown, want) {
		t.Errorf("the frames %v are shown, want %v", shown, want)
	}
	for range 2 * maxMarks {
		m.markCall(t.Context())
	}
	if m.isOwn(first) || len(m.marks) != maxMarks {
		t.Errorf("%d marks are kept", len(m.marks))
	}
}
