package control

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
	"github.com/dowel-mcp/dowel/internal/version"
)

// Intervals of a stream: between two lines of an idle one, between two statuses, and between two
// flushes of rows.
const (
	beatInterval   = 15 * time.Second
	statusInterval = 200 * time.Millisecond
	flushInterval  = 50 * time.Millisecond
	configInterval = 300 * time.Millisecond
	auditInterval  = 2 * time.Second // other processes write to the audit log, too
)

// noteLine is a line of a stream besides the lines of records.
type noteLine struct {
	K      string  `json:"k"`
	Status *Status `json:"status,omitempty"`
	// Server has written to stderr or changed its state.
	Server string `json:"server,omitzero"`
	// Seq is the last record that was considered.
	Seq   uint64 `json:"seq,omitzero"`
	Error string `json:"error,omitzero"`
	// Asks is the number of open questions.
	Asks *int `json:"asks,omitempty"`
	// Audit is the size of the audit log.
	Audit int64 `json:"audit,omitzero"`
}

// serveStream answers with everything that the console follows, one JSON object a line:
//
//	boot    the first line: the journal that numbers belong to
//	status  the whole status, at the beginning and when it has changed
//	asks    the number of open questions, at the beginning and when a question comes or goes
//	audit   the audit log has grown
//	chats   an agent has come or gone
//	config  the configuration was loaded again
//	log     a server has an entry more in its logs
//	op      an operation, again when it has changed, and with gone when ?filter no longer accepts it
//	frame   a frame, with ?rows=frames instead of operations
//	gap     records are lost
//	seq     the rows so far are complete up to a number
//	beat    nothing has happened
//	filter  the filter has an error, and rows are left out
//
// Rows are those behind ?after that ?filter accepts, or all that are kept if ?boot names another
// journal. A reader that is too slow gets a gap, and nothing waits for it.
func (d Running) serveStream(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(d.Life, stop)()
	batches, filterErr := d.followRows(ctx, r.URL.Query())
	s := &consoleStream{
		Running: d, w: w, out: json.NewEncoder(w),
		batches: batches, notes: followHub(d.Hub.Events(ctx)), loaded: d.configSet(),
	}
	s.out.SetEscapeHTML(false)
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w).Flush
	s.writeHead(filterErr)
	if flush() != nil {
		return
	}
	_, s.logged = d.Audit.state()
	s.agents = d.Chats.follow()
	defer s.startTickers()()
	for s.writeNext(ctx) == nil && flush() == nil {
	}
}

// followRows returns a channel of encoded rows for a request of a stream. If the filter has an
// error, it returns the error, and the channel stays empty.
func (d Running) followRows(ctx context.Context, query url.Values) (<-chan []byte, error) {
	after, _ := strconv.ParseUint(query.Get("after"), 10, 64) // else from the beginning
	if query.Get("boot") != d.Recorder.Boot() {
		after = 0
	}
	batches := make(chan []byte)
	accept, err := filter.Parse(query.Get("filter"), time.Now())
	if err == nil {
		rows := newRowReader(accept, query.Get("filter") != "", query.Get("rows") == "frames")
		go rows.follow(ctx, d.Recorder.Cursor(after), batches)
	}
	return batches, err
}

// consoleStream is one answer of [Running.serveStream]. Only the goroutine of the request uses it.
type consoleStream struct {
	Running
	w   http.ResponseWriter
	out *json.Encoder // to w

	batches     <-chan []byte // encoded rows
	notes       *notes
	asksChanged <-chan struct{}
	agents      <-chan struct{}
	logged      <-chan struct{}
	loaded      *config.Set // the configuration at the last look

	auditPoll, configPoll, beat *time.Ticker
}

// writeHead writes the lines at the beginning. filterErr is the error of the filter, or nil.
func (s *consoleStream) writeHead(filterErr error) {
	_ = s.out.Encode(s.Recorder.BootLine(version.Number())) // the first flush reports errors
	_ = s.out.Encode(s.statusLine())
	_ = s.writeAsks()
	if filterErr != nil {
		_ = s.out.Encode(noteLine{K: "filter", Error: filterErr.Error()})
	}
}

// writeAsks writes the number of open questions, and waits for its next change from now on.
func (s *consoleStream) writeAsks() error {
	open, changed := s.asks().countOpen()
	s.asksChanged = changed
	return s.out.Encode(noteLine{K: "asks", Asks: &open})
}

func (s *consoleStream) startTickers() (stop func()) {
	s.auditPoll, s.configPoll, s.beat = time.NewTicker(auditInterval), time.NewTicker(configInterval), time.NewTicker(beatInterval)
	return func() {
		s.auditPoll.Stop()
		s.configPoll.Stop()
		s.beat.Stop()
	}
}

// writeNext waits for the next event and writes its line, if it has one. It returns an error if the
// stream must end.
func (s *consoleStream) writeNext(ctx context.Context) (err error) {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case batch := <-s.batches:
		_, err = s.w.Write(batch)
	case <-s.notes.due:
		err = s.writeNotes(s.out, s.notes)
	case <-s.asksChanged:
		err = s.writeAsks()
	case <-s.agents:
		s.agents, err = s.Chats.follow(), s.out.Encode(noteLine{K: "chats"})
	case <-s.auditPoll.C:
		s.Audit.poll()
	case <-s.configPoll.C:
		if now := s.configSet(); now != s.loaded {
			s.loaded, err = now, s.out.Encode(noteLine{K: "config"})
		}
	case <-s.logged:
		var size int64
		size, s.logged = s.Audit.state()
		err = s.out.Encode(noteLine{K: "audit", Audit: size})
	case <-s.beat.C:
		err = s.out.Encode(noteLine{K: "beat"})
	}
	return err
}

// asks returns the open questions, or nil.
func (d Running) asks() *Asks {
	if d.Calls == nil {
		return nil
	}
	return d.Calls.Asks
}

func (d Running) statusLine() noteLine {
	s := d.Controller.Status()
	return noteLine{K: "status", Status: &s}
}

// writeNotes writes the status if it has changed, and the names of servers with new logs.
func (d Running) writeNotes(out *json.Encoder, n *notes) error {
	changed, logged, _ := n.take()
	for _, name := range logged {
		if err := out.Encode(noteLine{K: "log", Server: name}); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return out.Encode(d.statusLine())
}

// rowReader turns records into lines of a stream.
type rowReader struct {
	accept  filter.Filter
	filters bool // accept may refuse something
	frames  bool // are rows, instead of operations
	open    map[uint64]*openRow
	order   []uint64 // of open, to forget the oldest
}

// openRow is an operation that has not ended.
type openRow struct {
	what   string
	frames []*journal.Frame // empty unless the filter may look into them
	state  *journal.Operation
	shown  bool
}

// Limits of the memory of a stream: operations, and frames of one.
const (
	maxOpenRows  = 2000
	maxRowFrames = 50
)

func newRowReader(accept filter.Filter, filters, frames bool) *rowReader {
	return &rowReader{accept: accept, filters: filters, frames: frames, open: map[uint64]*openRow{}}
}

// follow sends lines until ctx ends. It reads on when the last lines have been taken.
func (rr *rowReader) follow(ctx context.Context, cursor *journal.Cursor, to chan<- []byte) {
	for {
		records, gap, err := cursor.Next(ctx, journalBatch)
		if err != nil {
			return
		}
		var batch []byte
		if gap != (journal.Gap{}) {
			batch = appendLine(batch, journal.GapLine(gap))
		}
		for _, r := range records {
			if line, ok := rr.row(r); ok {
				batch = appendLine(batch, line)
			}
		}
		batch = appendLine(batch, noteLine{K: "seq", Seq: cursor.Position()})
		select {
		case to <- batch:
		case <-ctx.Done():
			return
		}
		if len(records) < journalBatch {
			select {
			case <-time.After(flushInterval):
			case <-ctx.Done():
				return
			}
		}
	}
}

func appendLine(to []byte, line any) []byte {
	text, err := json.Marshal(line)
	if err != nil {
		return to // lines have only encodable members
	}
	return append(append(to, text...), '\n')
}

// row returns the line of a record, if it has one.
func (rr *rowReader) row(r journal.Record) (line rowLine, ok bool) {
	if r.Frame != nil {
		return rr.frameRow(r)
	}
	o := rr.operation(r.Operation.ID)
	wasShown, isForgotten := o.shown, o.state == nil && !r.Operation.IsOpen()
	o.state = r.Operation
	if !r.Operation.IsOpen() {
		rr.forgetOperation(r.Operation.ID)
	}
	if rr.frames {
		return rowLine{}, false
	}
	o.shown = !rr.filters || rr.accept.MatchOperation(r.Operation, o.frames)
	return rowLine{Line: journal.LineOf(r), What: o.what, Gone: !o.shown}, o.shown || wasShown || isForgotten
}

// frameRow returns the line of a frame: in a stream of operations only if it belongs to none.
func (rr *rowReader) frameRow(r journal.Record) (line rowLine, ok bool) {
	f := r.Frame
	var state *journal.Operation
	if f.Operation != 0 {
		o := rr.operation(f.Operation)
		if state = o.state; o.what == "" && f.Kind == journal.Request {
			o.what = describeRequest(f)
		}
		if rr.filters && !rr.frames && len(o.frames) < maxRowFrames {
			o.frames = append(o.frames, f)
		}
	}
	alone := f.Operation == 0 && (f.Kind == journal.Stray || f.Status == journal.Late)
	if !rr.frames && !alone || !rr.accept.Match(filter.Item{Frame: f, Operation: state}) {
		return rowLine{}, false
	}
	return summarize(r), true
}

// forgetOperation drops the memory of an operation that has ended.
func (rr *rowReader) forgetOperation(id uint64) {
	delete(rr.open, id)
	for i, other := range slices.Backward(rr.order) {
		if other == id {
			rr.order = slices.Delete(rr.order, i, i+1)
			return
		}
	}
}

// operation returns the memory of an operation.
func (rr *rowReader) operation(id uint64) *openRow {
	o := rr.open[id]
	if o == nil {
		for len(rr.order) >= maxOpenRows {
			delete(rr.open, rr.order[0])
			rr.order = rr.order[1:]
		}
		o = &openRow{}
		rr.open[id] = o
		rr.order = append(rr.order, id)
	}
	return o
}
