package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
)

// textWriter writes rows as lines of text. Nothing of a message reaches the terminal unescaped.
type textWriter struct {
	f      *factory.Factory
	frames bool
	width  int // of a line; 0 means the screen's
}

// maxText is the part of a message that a row may show, in bytes, before it is cut to the width.
const maxText = 4 << 10

// timeFormat is the format of times in rows.
const timeFormat = "15:04:05.000"

func (w *textWriter) wants() (frames, operations bool) { return w.frames, !w.frames }

func (w *textWriter) writeEnd() {}

// columns returns the width of a line.
func (w *textWriter) columns() int {
	if w.width > 0 {
		return w.width
	}
	return w.f.Stdout.Width()
}

// show returns foreign text as a part of a line.
func show(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return term.RevealLine(strings.ToValidUTF8(text, "\uFFFD"))
}

// pad returns text with exactly n characters.
func pad(text string, n int) string {
	text = term.Shorten(text, n)
	return text + strings.Repeat(" ", max(0, n-term.TextWidth(text)))
}

func padLeft(text string, n int) string {
	text = term.Shorten(text, n)
	return strings.Repeat(" ", max(0, n-term.TextWidth(text))) + text
}

// pegs show the status of an operation.
var pegs = map[journal.Status]string{
	journal.OK: "●", journal.Pending: "◐", journal.Asked: "◆", journal.ToolError: "○", journal.Failed: "○", journal.Refused: "○",
	journal.Cancelled: "◌", journal.Lost: "◌", journal.Late: "◌",
}

// paint colours text by a status.
func (w *textWriter) paint(s journal.Status, text string) string {
	switch s {
	case journal.OK:
		return w.f.Stdout.Green(text)
	case journal.ToolError, journal.Failed, journal.Refused:
		return w.f.Stdout.Red(text)
	case journal.Asked:
		return w.f.Stdout.Yellow(text)
	}
	return w.f.Stdout.Dim(text)
}

// Widths of columns.
const (
	nameWidth = 10
	sizeWidth = 6
	tookWidth = 7
	// fixedWidth is the width of all columns but the text, with their spaces.
	fixedWidth = len(timeFormat) + 2 + nameWidth + 1 + 3 + 1 + nameWidth + 2 + 2 + sizeWidth + 2 + tookWidth
	leastText  = 12
)

func (w *textWriter) writeOperation(o *journal.Operation, frames []*journal.Frame, l journal.Line) {
	text := operationText(o, frames)
	width := max(leastText, w.columns()-fixedWidth)
	fmt.Fprintf(w.f.Stdout, "%s  %s %s %s  %s  %s  %s\n", w.f.Stdout.Dim(l.Time.Local().Format(timeFormat)), padLeft(show(o.Client), nameWidth),
		w.paint(o.Status, "─"+pegs[o.Status]+"─"), pad(show(orDash(o.Server)), nameWidth), w.fit(text, width),
		padLeft(formatSize(o.Received+o.Sent), sizeWidth), padLeft(formatTook(o.Took()), tookWidth))
}

// fit returns text with the width of its column: on a terminal with exactly width characters.
func (w *textWriter) fit(text string, width int) string {
	if w.width == 0 && !w.f.Stdout.IsTerminal() {
		return text
	}
	return pad(text, width)
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// operationText describes an operation: its status unless it is ok, and its request.
func operationText(o *journal.Operation, frames []*journal.Frame) string {
	var parts []string
	if o.Status != journal.OK {
		parts = append(parts, string(o.Status)+":")
	}
	if o.Name == "" || o.Method != "tools/call" {
		parts = append(parts, show(o.Method))
	}
	if o.Name != "" {
		parts = append(parts, show(o.Name))
	}
	if o.Error != "" {
		return strings.Join(append(parts, show(o.Error)), " ")
	}
	for _, f := range frames {
		if arguments := rawjson.Lookup(rawjson.Lookup(f.Body, "params"), "arguments"); f.Kind == journal.Request && len(arguments) > 2 {
			return strings.Join(append(parts, show(string(arguments[:min(len(arguments), maxText)]))), " ")
		}
	}
	return strings.Join(parts, " ")
}

func (w *textWriter) writeFrame(f *journal.Frame, l journal.Line) {
	dowel, peer := "dowel", f.Client
	if f.Leg == journal.ServerLeg {
		peer = f.Server
	}
	from, to := peer, dowel
	if f.Direction == framesink.Sent {
		from, to = dowel, peer
	}
	arrow := w.f.Stdout.Cyan("→")
	if f.Kind == journal.Stray {
		arrow = w.f.Stdout.Red("✗")
	}
	head := fmt.Sprintf("%s %s %s  ", padLeft(show(orDash(from)), nameWidth), arrow, pad(show(orDash(to)), nameWidth))
	const headWidth = len(timeFormat) + 2 + nameWidth + 3 + nameWidth + 2
	text := w.fit(frameText(f, l), max(leastText, w.columns()-headWidth))
	fmt.Fprintf(w.f.Stdout, "%s  %s%s\n", w.f.Stdout.Dim(l.Time.Local().Format(timeFormat)), head, strings.TrimRight(text, " "))
}

// frameText describes a frame: its operation, kind, method, status and body.
func frameText(f *journal.Frame, l journal.Line) string {
	parts := []string{}
	if f.Operation != 0 {
		parts = append(parts, "op:"+strconv.FormatUint(f.Operation, 10))
	}
	parts = append(parts, f.Kind.String())
	if f.Method != "" {
		parts = append(parts, show(f.Method))
	}
	if f.Name != "" {
		parts = append(parts, show(f.Name))
	}
	if f.Status != "" {
		parts = append(parts, string(f.Status), formatTook(f.Took))
	}
	return strings.Join(append(parts, formatSize(f.Size), show(bodyText(f.Body))), " ")
}

// bodyText returns the part of a message that its other columns do not say.
func bodyText(body []byte) string {
	for _, member := range []string{"params", "result", "error"} {
		if raw := rawjson.Lookup(body, member); raw != nil {
			body = raw
			break
		}
	}
	return string(body[:min(len(body), maxText)])
}

func (w *textWriter) writeGap(g journal.Gap, from, to time.Time) {
	when := ""
	if !from.IsZero() && !to.IsZero() {
		when = fmt.Sprintf(", %s to %s", from.Local().Format(timeFormat), to.Local().Format(timeFormat))
	}
	fmt.Fprintln(w.f.Stdout, w.f.Stdout.Yellow(fmt.Sprintf("≈≈≈ %d records are lost%s ≈≈≈", g.Len(), when)))
}

// formatSize returns a number of bytes in at most 5 characters.
func formatSize(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 1000<<10:
		return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + "K"
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "M"
}

// formatTook returns a time in at most 7 characters.
func formatTook(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + "ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Hour:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return strconv.FormatFloat(d.Hours(), 'f', 1, 64) + "h"
}
