package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/export"
)

// commandWriter writes each call as a command that repeats it.
type commandWriter struct {
	f  *factory.Factory
	as string
}

func (w *commandWriter) wants() (frames, operations bool) { return false, true }

func (w *commandWriter) writeFrame(*journal.Frame, journal.Line) {}

func (w *commandWriter) writeGap(g journal.Gap, _, _ time.Time) {
	w.f.Warn("%d records are lost", g.Len())
}

func (w *commandWriter) writeEnd() {}

func (w *commandWriter) writeOperation(o *journal.Operation, frames []*journal.Frame, _ journal.Line) {
	if o.IsOpen() {
		return
	}
	switch text, err := export.Command(w.as, o, frames); {
	case errors.Is(err, export.ErrCut):
		w.f.Warn("operation %d is left out: %v", o.ID, err)
	case err == nil:
		fmt.Fprintln(w.f.Stdout, text)
	}
}

// harWriter writes an HTTP archive.
type harWriter struct {
	f       *factory.Factory
	archive export.Archive
}

func (w *harWriter) wants() (frames, operations bool) { return false, true }

func (w *harWriter) writeFrame(*journal.Frame, journal.Line) {}

func (w *harWriter) writeGap(g journal.Gap, _, _ time.Time) { w.f.Warn("%d records are lost", g.Len()) }

func (w *harWriter) writeOperation(o *journal.Operation, frames []*journal.Frame, _ journal.Line) {
	w.archive.Add(o, frames)
}

func (w *harWriter) writeEnd() { factory.WriteJSONLine(w.f.Stdout, w.archive.Document()) }
