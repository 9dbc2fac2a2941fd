package taskengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// entry is what the engine remembers of a record.
type entry struct {
	id, owner, tool string
	expires         time.Time
	ended           bool
}

// newEntry returns the entry of a record.
func newEntry(r *tasks.Record) *entry {
	return &entry{r.ID, r.Owner, r.Tool, r.Expires(), r.Status.IsTerminal()}
}

// readEntry returns the entry of a stored record, or nil if the record cannot be read. It decodes
// only the few members that an entry needs: a start reads all records.
func readEntry(data []byte) *entry {
	var r tasks.Record
	var invalid error
	syntax := rawjson.CheckObject(data, func(key, value []byte) {
		var to any
		switch string(key) {
		case "id":
			r.ID, _ = rawjson.String(value)
		case "owner":
			r.Owner, _ = rawjson.String(value)
		case "tool":
			r.Tool, _ = rawjson.String(value)
		case "status":
			status, _ := rawjson.String(value)
			r.Status = tasks.Status(status)
		case "created":
			to = &r.Created
		case "ttl":
			to = &r.TTL
		}
		if to != nil {
			invalid = cmp.Or(invalid, json.Unmarshal(value, to))
		}
	})
	if syntax != nil || invalid != nil {
		return nil
	}
	return newEntry(&r)
}

// noteOthers notes the records that other engines have stored.
func (e *Engine) noteOthers(ctx context.Context) error {
	if !e.opts.IsShared {
		return nil
	}
	return e.readNew(ctx, e.note)
}

// readWait is how long readNew waits for a record before it asks whether there is one.
const readWait = time.Second

// readNew passes every record that was stored since the last call, and that has not expired, to
// use. A record that expires meanwhile may have been promised, and does not come.
func (e *Engine) readNew(ctx context.Context, use func(*entry)) error {
	e.reading.Lock()
	defer e.reading.Unlock()
	stream, err := e.js.Stream(ctx, e.name) // e.stream is in use, and its Info is not safe then
	if err != nil {
		return err
	}
	state := stream.CachedInfo().State
	if state.Msgs > 0 && state.LastSeq > e.seen {
		err = e.readAfter(ctx, stream, e.seen, use)
	}
	if err == nil {
		e.seen = state.LastSeq // if it has read further, some come again
	}
	return err
}

// readAfter passes the records after a sequence number to use.
func (e *Engine) readAfter(ctx context.Context, stream jetstream.Stream, last uint64, use func(*entry)) error {
	c, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: last + 1})
	if err != nil {
		return err
	}
	all, err := c.Messages()
	if err != nil {
		return err
	}
	defer all.Stop()
	for {
		m, err := all.Next(jetstream.NextMaxWait(readWait))
		if errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
			switch _, err = stream.GetMsg(ctx, last+1, jetstream.WithGetMsgSubject(e.opts.Subject+">")); {
			case err == nil:
				continue
			case errors.Is(err, jetstream.ErrMsgNotFound):
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("the stored tasks cannot be read: %w", err)
		}
		about, err := m.Metadata()
		if err != nil {
			return err
		}
		if known := readEntry(m.Data()); known != nil && time.Now().Before(known.expires) {
			use(known)
		}
		if last = about.Sequence.Stream; about.NumPending == 0 {
			return nil
		}
	}
}

// note remembers the newest version of a record.
func (e *Engine) note(known *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(known)
}

// add is note for a caller that holds e.mu.
func (e *Engine) add(known *entry) {
	e.known[known.id] = known
	if e.owned[known.owner] == nil {
		e.owned[known.owner] = map[string]*entry{}
	}
	e.owned[known.owner][known.id] = known
}

// remove forgets a record. e.mu is held.
func (e *Engine) remove(id string) {
	known := e.known[id]
	if known == nil {
		return
	}
	delete(e.known, id)
	if delete(e.owned[known.owner], id); len(e.owned[known.owner]) == 0 {
		delete(e.owned, known.owner)
	}
}

// dropExpired forgets the records of an owner that have expired. e.mu is held.
func (e *Engine) dropExpired(owner string) {
	now := time.Now()
	for id, known := range e.owned[owner] {
		if !now.Before(known.expires) {
			e.remove(id)
		}
	}
}

// dropSome forgets a few records of any owners if they have expired, since their owners may never
// come back. Each new record looks at more than one other, so the number of forgotten ones has a
// bound. e.mu is held.
func (e *Engine) dropSome() {
	now, looks := time.Now(), 0
	for id, known := range e.known { // it begins anywhere
		if looks++; looks > 20 {
			return
		}
		if !now.Before(known.expires) {
			e.remove(id)
		}
	}
}
