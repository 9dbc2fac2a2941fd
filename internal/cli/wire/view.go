package wire

import (
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
)

// Limits of a view: of operations that have not ended, and of the frames of one that are kept.
const (
	maxOpen   = 10_000
	maxFrames = 200
)

// view turns lines of the journal into rows: operations when they end or ask, or frames.
type view struct {
	accept filter.Filter
	out    writer
	open   map[uint64]*openOperation

	seen, shown int // rows before the filter, and after it

	gap    journal.Gap // not written yet
	before time.Time   // of the record before the gap
}

// openOperation is an operation that has not ended.
type openOperation struct {
	frames []*journal.Frame
	state  *journal.Operation // nil if its first record came before the view began
}

func newView(accept filter.Filter, out writer) *view {
	return &view{accept: accept, out: out, open: map[uint64]*openOperation{}}
}

// addLine adds a line of the journal.
func (v *view) addLine(l journal.Line) {
	if g := l.Gap(); g != (journal.Gap{}) {
		if v.gap == (journal.Gap{}) {
			v.gap.From = g.From
		}
		v.gap.To = g.To
		return
	}
	r, ok := l.Record()
	if !ok {
		return
	}
	v.writeGap(l.Time)
	v.before = l.Time
	if r.Frame != nil {
		v.addFrame(r.Frame, l)
		return
	}
	v.addState(r.Operation, l)
}

// writeGap writes the gap before a record.
func (v *view) writeGap(now time.Time) {
	if v.gap != (journal.Gap{}) {
		v.out.writeGap(v.gap, v.before, now)
		v.gap = journal.Gap{}
	}
}

// writeRest ends the view: it writes what has not been written.
func (v *view) writeRest() {
	v.writeGap(time.Time{})
	v.out.writeEnd()
}

// describeNothing says why a view of the past has no rows.
func (v *view) describeNothing() string {
	things := "operations"
	if frames, _ := v.out.wants(); frames {
		things = "messages"
	}
	if v.seen == 0 {
		return "Nothing is shown: there are no " + things + " yet."
	}
	return fmt.Sprintf("The filter matches none of the %s %s.", display.Thousands(v.seen), things)
}

// operation returns the operation of an id.
func (v *view) operation(id uint64) *openOperation {
	o := v.open[id]
	if o == nil {
		if len(v.open) >= maxOpen {
			clear(v.open) // the oldest ones are not known; all of them will come without frames
		}
		o = &openOperation{}
		v.open[id] = o
	}
	return o
}

func (v *view) addFrame(f *journal.Frame, l journal.Line) {
	var state *journal.Operation
	if f.Operation != 0 {
		o := v.operation(f.Operation)
		if state = o.state; len(o.frames) < maxFrames {
			o.frames = append(o.frames, f)
		}
	}
	frames, _ := v.out.wants()
	alone := f.Operation == 0 && (f.Kind == journal.Stray || f.Status == journal.Late)
	if !frames && !alone {
		return
	}
	v.seen++
	if v.accept.Match(filter.Item{Frame: f, Operation: state}) {
		v.shown++
		v.out.writeFrame(f, l)
	}
}

func (v *view) addState(state *journal.Operation, l journal.Line) {
	o := v.operation(state.ID)
	waits := state.Status == journal.Asked && (o.state == nil || o.state.Status != journal.Asked)
	o.state = state
	if !state.IsOpen() {
		delete(v.open, state.ID)
	}
	_, operations := v.out.wants()
	if !operations || !waits && state.IsOpen() {
		return
	}
	v.seen++
	if v.accept.MatchOperation(state, o.frames) {
		v.shown++
		v.out.writeOperation(state, o.frames, l)
	}
}
