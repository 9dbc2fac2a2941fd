// Package taskengine stores tasks in a JetStream stream of NATS. [Engine] is a [tasks.Store] over
// any JetStream, embedded or remote. [Disk] is one whose server runs in this process and keeps its
// files in a folder; it starts with the first task.
//
// A record is the newest message on a subject of its own, and its version is the sequence number of
// that message. So a conditional write is a publication that expects the last sequence number of
// the subject, and the message has the life of the record. Decision 29 says what an acknowledgement
// means.
package taskengine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamName = "DOWEL_TASKS"
	subjects   = "dowel.tasks."
	// maxStored bounds the bytes of all records. Beyond it, new tasks are refused.
	maxStored = 8 << 30
)

// Options configure an [Engine].
type Options struct {
	// Runner names this process in the records of the tasks that it runs.
	Runner string
	// IsGone reports whether the process that a runner names has ended.
	IsGone func(runner string) bool
	// Subject begins the subjects of the records in the stream. [Open] sets it.
	Subject string
	// IsShared says that other engines store records in the stream, too. Then lists begin with a
	// look for new ones.
	IsShared bool
}

// Engine is a [tasks.Store] in a stream. It counts the records of an owner as far as it has seen
// them: all that were there when it was opened or made the last list, and its own.
type Engine struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	name   string // of stream
	opts   Options

	reading sync.Mutex // held while records are read in the order of the stream; guards seen
	seen    uint64     // the sequence number up to which they were read

	mu    sync.Mutex // guards the rest
	known map[string]*entry
	owned map[string]map[string]*entry // by owner
}

// Open returns the engine of a JetStream. It makes the stream if there is none.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Engine, error) {
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjects + ">"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxBytes: maxStored, Discard: jetstream.DiscardNew,
		AllowMsgTTL: true, AllowDirect: false, // a direct read may miss the reader's own write
	})
	if err != nil {
		return nil, fmt.Errorf("the stream of tasks cannot be opened: %w", err)
	}
	o.Subject = subjects
	return OpenStream(ctx, js, stream, o)
}

// OpenStream returns the engine of a stream, which keeps one message of each subject, lets messages
// have a life, and answers no direct reads.
func OpenStream(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, o Options) (*Engine, error) {
	e := &Engine{js: js, stream: stream, name: stream.CachedInfo().Config.Name, opts: o, known: map[string]*entry{}, owned: map[string]map[string]*entry{}}
	if err := e.readNew(ctx, e.note); err != nil {
		return nil, err // it knows only a part of the records
	}
	return e, nil
}

// Create implements [tasks.Store].
func (e *Engine) Create(ctx context.Context, r *tasks.Record, most int) error {
	e.mu.Lock()
	e.dropExpired(r.Owner)
	e.dropSome()
	if e.known[r.ID] != nil {
		e.mu.Unlock()
		return tasks.ErrConflict
	}
	if most > 0 && len(e.owned[r.Owner]) >= most {
		e.mu.Unlock()
		return tasks.TooMany(most)
	}
	e.add(newEntry(r)) // before it is stored, so that others count it
	e.mu.Unlock()
	r.Runner = e.opts.Runner
	err := e.publish(ctx, r, 0)
	if err != nil {
		e.mu.Lock()
		e.remove(r.ID)
		e.mu.Unlock()
	}
	return err
}

// Load implements [tasks.Store].
func (e *Engine) Load(ctx context.Context, id string) (*tasks.Record, error) {
	if !isID(id) {
		return nil, tasks.ErrUnknown
	}
	m, err := e.stream.GetLastMsgForSubject(ctx, e.opts.Subject+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, tasks.ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("a task cannot be read: %w", err)
	}
	r, err := decodeRecord(m.Data, m.Sequence)
	if err == nil && !time.Now().Before(r.Expires()) {
		return nil, tasks.ErrUnknown
	}
	return r, err
}

// Replace implements [tasks.Store].
func (e *Engine) Replace(ctx context.Context, next *tasks.Record) error {
	if next.Version == 0 { // the stream would take it for a new one
		return tasks.ErrUnknown
	}
	err := e.publish(ctx, next, next.Version)
	if err == nil {
		e.note(newEntry(next))
	}
	if !errors.Is(err, tasks.ErrConflict) {
		return err
	}
	if _, unknown := e.Load(ctx, next.ID); errors.Is(unknown, tasks.ErrUnknown) {
		return tasks.ErrUnknown
	}
	return err
}

// List implements [tasks.Store].
func (e *Engine) List(ctx context.Context, owner string) (own []*tasks.Record, err error) {
	if err := e.noteOthers(ctx); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.dropExpired(owner)
	ids := make([]string, 0, len(e.owned[owner]))
	for id := range e.owned[owner] {
		ids = append(ids, id)
	}
	e.mu.Unlock()
	own, err = e.loadAll(ctx, ids)
	slices.SortFunc(own, func(a, b *tasks.Record) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return own, err
}

// ListTool implements [tasks.Store].
func (e *Engine) ListTool(ctx context.Context, tool string) (open []*tasks.Record, err error) {
	var ids []string
	if err := e.noteOthers(ctx); err != nil {
		return nil, err
	}
	e.mu.Lock()
	for id, known := range e.known {
		if known.tool == tool && !known.ended {
			ids = append(ids, id)
		}
	}
	e.mu.Unlock()
	open, err = e.loadAll(ctx, ids)
	return slices.DeleteFunc(open, func(r *tasks.Record) bool { return r.Status.IsTerminal() }), err
}

// Runner implements [tasks.Store].
func (e *Engine) Runner() string { return e.opts.Runner }

// IsGone implements [tasks.Store].
func (e *Engine) IsGone(runner string) bool { return e.opts.IsGone != nil && e.opts.IsGone(runner) }

// Prepare implements [tasks.Store].
func (e *Engine) Prepare() error { return nil }

// Close implements [tasks.Store]. The JetStream stays open.
func (e *Engine) Close() error { return nil }

// loadsAtOnce is how many records loadAll asks for at once, so that it does not wait
// for each answer.
const loadsAtOnce = 8

// loadAll loads records. It leaves out records that have expired meanwhile or cannot be decoded.
func (e *Engine) loadAll(ctx context.Context, ids []string) (all []*tasks.Record, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	records, next, work := make([]*tasks.Record, len(ids)), atomic.Int64{}, sync.WaitGroup{}
	for range min(loadsAtOnce, len(ids)) {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(ids) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				r, err := e.Load(ctx, ids[i])
				if err != nil && !errors.Is(err, tasks.ErrUnknown) && !errors.Is(err, errUndecodable) {
					cancel(err)
				}
				records[i] = r
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slices.DeleteFunc(records, func(r *tasks.Record) bool { return r == nil }), nil
}

// publish stores a record as the message after the one with the sequence number last. It sets the
// version of the record.
func (e *Engine) publish(ctx context.Context, r *tasks.Record, last uint64) error {
	data, err := encodeRecord(r)
	if err != nil {
		return err
	}
	left := time.Until(r.Expires())
	if left <= 0 {
		return tasks.ErrUnknown
	}
	left = (left + time.Second - 1).Truncate(time.Second) // the server counts in seconds
	ack, err := e.js.PublishMsg(ctx, &nats.Msg{Subject: e.opts.Subject + r.ID, Data: data},
		jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithMsgTTL(left), jetstream.WithExpectStream(e.name))
	if IsStale(err) {
		return tasks.ErrConflict
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return tasks.ErrTooLarge
	case err != nil:
		return fmt.Errorf("a task cannot be stored: %w", err)
	}
	r.Version = ack.Sequence
	return nil
}

// errStaleInFlight is the code of a JetStream cluster for a conditional write that it refuses
// because it is storing another write to the subject.
const errStaleInFlight jetstream.ErrorCode = 10164

// IsStale reports whether JetStream has refused a conditional write because another one came before
// it.
func IsStale(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == errStaleInFlight)
}

// encodeRecord returns the JSON of a record. The result of a task stays as its client has seen it.
func encodeRecord(r *tasks.Record) ([]byte, error) {
	var data bytes.Buffer
	to := json.NewEncoder(&data)
	to.SetEscapeHTML(false)
	err := to.Encode(r)
	return data.Bytes(), err
}

// errUndecodable is the error of decodeRecord. Another version of dowel may have stored the record.
var errUndecodable = errors.New("a stored task cannot be read")

func decodeRecord(data []byte, version uint64) (*tasks.Record, error) {
	r := new(tasks.Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndecodable, err)
	}
	r.Version = version
	return r, nil
}

// isID reports whether text may be the id of a task: no other text may reach a subject.
func isID(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
