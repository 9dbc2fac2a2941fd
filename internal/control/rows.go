package control

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tokencount"
	"github.com/dowel-mcp/dowel/mcp"
)

// rowLine is a line of the journal without the text of messages.
type rowLine struct {
	journal.Line
	// What holds the arguments of an operation, or the part of a message that tells it from others.
	// Long values are cut.
	What string `json:"what,omitzero"`
	// Gone means that the filter no longer accepts an operation which is shown.
	Gone bool `json:"gone,omitzero"`
}

// maxWhat limits What, in bytes.
const maxWhat = 160

// summarize returns the row of a frame.
func summarize(r journal.Record) rowLine {
	line := rowLine{Line: journal.LineOf(r)}
	if r.Frame != nil {
		line.What = cutText(describeFrame(r.Frame))
		line.Header, line.Frame, line.Text = nil, nil, ""
	}
	return line
}

// describeRequest returns the arguments of a request, or "" without any.
func describeRequest(f *journal.Frame) string {
	if rawjson.CheckAll(f.Body) != nil { // no message, or cut
		return ""
	}
	params := rawjson.Lookup(f.Body, "params")
	arguments := rawjson.Lookup(params, "arguments")
	if len(arguments) <= len("{}") {
		return ""
	}
	return cutText(string(arguments[:min(len(arguments), maxWhat+utf8.UTFMax)]))
}

// frameNoise are the members of parameters and results that nearly all have.
var frameNoise = []string{"_meta", "resultType", "ttlMs", "cacheScope"}

// describeFrame returns what tells a message from others: its arguments, parameters, result or
// error, or else the beginning of the text.
func describeFrame(f *journal.Frame) string {
	if f.Kind == journal.Request {
		if text := describeRequest(f); text != "" {
			return f.Name + " " + text
		}
	}
	isJSON := rawjson.CheckAll(f.Body) == nil
	for _, name := range []string{"params", "result", "error"} {
		if !isJSON {
			break
		}
		value := rawjson.Lookup(f.Body, name)
		if value == nil {
			continue
		}
		var b strings.Builder
		for it := rawjson.Object(value); it.Next() && b.Len() <= maxWhat; {
			if key := string(it.Key); !slices.Contains(frameNoise, key) {
				b.WriteString(key + ": ")
				b.Write(it.Value[:min(len(it.Value), maxWhat)])
				b.WriteByte(' ')
			}
		}
		return strings.TrimSpace(b.String())
	}
	return string(f.Body[:min(len(f.Body), maxWhat+utf8.UTFMax)])
}

// cutText returns the beginning of a text, with at most maxWhat bytes and valid.
func cutText(text string) string {
	text = text[:min(len(text), maxWhat)]
	for i := 0; i < utf8.UTFMax && len(text) > 0; i++ {
		if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size > 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// errNotKept is the error for a record that the journal has dropped.
var errNotKept = errors.New("the message is not kept any more: the journal holds the newest 16 MiB")

// serveFrame answers with a whole frame.
func (d Running) serveFrame(w http.ResponseWriter, r *http.Request) {
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		writeOutcome(w, errors.New("want the number of a frame"))
		return
	}
	for record := range d.kept(r.Context(), seq) {
		if record.Seq == seq && record.Frame != nil {
			writeJSON(w, journal.LineOf(record))
			return
		}
		break
	}
	writeOutcome(w, errNotKept)
}

// operationDetail is an operation with the summaries of its frames. Its first frames may be
// missing.
type operationDetail struct {
	Operation *rowLine  `json:"operation,omitempty"`
	Frames    []rowLine `json:"frames"`
}

// maxDetailFrames limits the frames of an operation that are shown. The newest are left out.
const maxDetailFrames = 500

// serveOperation answers with an operation and its frames.
func (d Running) serveOperation(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil || id == 0 {
		writeOutcome(w, errors.New("want the number of an operation"))
		return
	}
	detail, what := operationDetail{Frames: []rowLine{}}, ""
	for record := range d.kept(r.Context(), id) {
		switch {
		case record.Frame != nil && record.Frame.Operation == id && len(detail.Frames) < maxDetailFrames:
			detail.Frames = append(detail.Frames, summarize(record))
			if what == "" && record.Frame.Kind == journal.Request {
				what = describeRequest(record.Frame)
			}
		case record.Operation != nil && record.Operation.ID == id:
			detail.Operation = &rowLine{Line: journal.LineOf(record), What: what}
		}
	}
	if detail.Operation == nil && len(detail.Frames) == 0 {
		writeOutcome(w, errNotKept)
		return
	}
	writeJSON(w, detail)
}

// kept iterates over the records that the journal has now, from a number on.
func (d Running) kept(ctx context.Context, from uint64) func(yield func(journal.Record) bool) {
	return func(yield func(journal.Record) bool) {
		_, newest := d.Recorder.Bounds()
		for cursor := d.Recorder.Cursor(from - 1); cursor.Position() < newest; {
			records, _, err := cursor.Next(ctx, journalBatch)
			if err != nil || !yieldAll(records, yield) {
				return
			}
		}
	}
}

func yieldAll(records []journal.Record, yield func(journal.Record) bool) bool {
	for _, r := range records {
		if !yield(r) {
			return false
		}
	}
	return true
}

// ClientActivity is a client of the gateway, and its newest work that the journal has.
type ClientActivity struct {
	Name        string `json:"name"`
	Revision    string `json:"revision,omitzero"` // of its newest message
	Connections int    `json:"connections"`       // that its messages came over
	Operations  int    `json:"operations"`
	// Tokens are the estimated cost of the newest list of tools that it got, for its model.
	Tokens int       `json:"tokens,omitzero"`
	Seen   time.Time `json:"seen"`
	// Open are its operations that have not ended, the oldest first, at most 10.
	Open []rowLine `json:"open,omitempty"`
}

// maxOpenShown limits ClientActivity.Open.
const maxOpenShown = 10

// clientsOf returns the clients with messages in the journal until a time, the last one to send
// first. A zero time means now.
func clientsOf(recorder *journal.Recorder, until time.Time) []ClientActivity {
	fold := clientFold{map[string]*clientState{}, map[uint64]*clientState{}}
	for r := range (Running{Recorder: recorder}).kept(context.Background(), 1) {
		if r.Frame != nil {
			if !until.IsZero() && r.Frame.Time.After(until) {
				break
			}
			fold.addFrame(r.Frame)
		} else if c := fold.byOperation[r.Operation.ID]; c != nil {
			c.setOperation(r)
		}
	}
	all := []ClientActivity{}
	for _, c := range fold.byName {
		all = append(all, c.activity())
	}
	slices.SortFunc(all, func(a, b ClientActivity) int { return b.Seen.Compare(a.Seen) })
	return all
}

// clientFold collects what clients do. Operations are those with a message of a client: dowel has
// others of its own.
type clientFold struct {
	byName      map[string]*clientState
	byOperation map[uint64]*clientState
}

type clientState struct {
	ClientActivity
	conns      map[uint64]bool
	operations map[uint64]bool
	open       map[uint64]journal.Record
}

// countTokens adds a page of a list of tools. A list begins with a request without a cursor.
func (c *clientState) countTokens(f *journal.Frame) {
	switch {
	case f.Method != mcp.MethodListTools || len(f.Body) == 0:
	case f.Kind == journal.Request && rawjson.Lookup(rawjson.Lookup(f.Body, "params"), "cursor") == nil:
		c.Tokens = 0
	case f.Kind == journal.Response:
		c.Tokens += tokencount.EstimateText(f.Body) * f.Size / len(f.Body) // a long body is cut
	}
}

func (fold *clientFold) addFrame(f *journal.Frame) {
	if f.Leg != journal.ClientLeg || f.Client == "" {
		return
	}
	c := fold.byName[f.Client]
	if c == nil {
		c = &clientState{ClientActivity{Name: f.Client}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]journal.Record{}}
		fold.byName[f.Client] = c
	}
	c.conns[f.Conn] = true
	c.countTokens(f)
	c.Seen = f.Time
	if f.Revision != "" {
		c.Revision = string(f.Revision)
	}
	if f.Operation != 0 {
		c.operations[f.Operation] = true
		fold.byOperation[f.Operation] = c
	}
}

// setOperation takes over the state of an operation. A subscription does not count as work.
func (c *clientState) setOperation(r journal.Record) {
	if o := r.Operation; o.IsOpen() && o.Method != mcp.MethodListen {
		c.open[o.ID] = r
	} else {
		delete(c.open, o.ID)
	}
}

func (c *clientState) activity() ClientActivity {
	a := c.ClientActivity
	a.Connections, a.Operations = len(c.conns), len(c.operations)
	for _, r := range c.open {
		a.Open = append(a.Open, rowLine{Line: journal.LineOf(r)})
	}
	slices.SortFunc(a.Open, func(a, b rowLine) int { return a.Start.Compare(b.Start) })
	a.Open = a.Open[:min(len(a.Open), maxOpenShown)]
	return a
}
