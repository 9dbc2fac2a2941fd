package journal

import (
	"context"
	"errors"
	"sort"
	"sync"
)

// Gap is a range of sequence numbers of lost records. The zero Gap is empty.
type Gap struct{ From, To uint64 }

// Len returns the number of lost records.
func (g Gap) Len() uint64 {
	if g == (Gap{}) {
		return 0
	}
	return g.To - g.From + 1
}

// errClosed is the error of a cursor at the end of a closed journal.
var errClosed = errors.New("the journal is closed")

// ring keeps the newest records. The sequence numbers in it rise, with gaps.
type ring struct {
	maxBytes int

	mu      sync.Mutex
	records []Record // circular
	first   int      // index of the oldest record
	count   int
	bytes   int
	last    uint64 // the newest sequence number, also of a lost record
	closed  bool
	changed chan struct{} // closed at the next change; nil if no reader waits
}

// addRecords appends records, and drops the oldest ones beyond the limit. The last record always
// stays.
func (g *ring) addRecords(records []Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range records {
		for g.count > 0 && g.bytes+r.size() > g.maxBytes {
			g.dropOldest()
		}
		if g.count == len(g.records) {
			g.grow()
		}
		g.records[(g.first+g.count)%len(g.records)] = r
		g.count++
		g.bytes += r.size()
		g.last = r.Seq
	}
	g.wakeReaders()
}

// noteLoss makes the sequence number of a lost record known.
func (g *ring) noteLoss(last uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = max(g.last, last)
	g.wakeReaders()
}

// dropOldest removes the oldest record. g.mu is held.
func (g *ring) dropOldest() {
	g.bytes -= g.records[g.first].size()
	g.records[g.first] = Record{}
	g.first = (g.first + 1) % len(g.records)
	g.count--
}

// grow doubles the room. g.mu is held.
func (g *ring) grow() {
	const least = 256
	larger := make([]Record, max(least, 2*len(g.records)))
	n := copy(larger, g.records[g.first:])
	copy(larger[n:], g.records[:g.first])
	g.records, g.first = larger, 0
}

// wakeReaders wakes the waiting cursors. g.mu is held.
func (g *ring) wakeReaders() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

func (g *ring) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.wakeReaders()
}

// read appends at most limit records after a sequence number to to. If the first of them do not
// exist any more, it returns a gap and the records after it. A gap between records ends the result.
// changed is closed at the next change; it is nil unless the result is empty.
func (g *ring) read(after uint64, limit int, to []Record) (_ []Record, gap Gap, changed <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	start := sort.Search(g.count, func(i int) bool { return g.at(i).Seq > after })
	if start == g.count {
		switch {
		case g.last > after:
			return to, Gap{after + 1, g.last}, nil, nil
		case g.closed:
			return to, gap, nil, errClosed
		case g.changed == nil:
			g.changed = make(chan struct{})
		}
		return to, gap, g.changed, nil
	}
	if seq := g.at(start).Seq; seq > after+1 {
		gap = Gap{after + 1, seq - 1}
		after = seq - 1
	}
	for i := start; i < g.count && limit > 0 && g.at(i).Seq == after+1; i++ {
		to = append(to, g.at(i))
		after++
		limit--
	}
	return to, gap, nil, nil
}

func (g *ring) at(i int) Record { return g.records[(g.first+i)%len(g.records)] }

// bounds returns the oldest and the newest sequence number. oldest is newest+1 if the ring is
// empty.
func (g *ring) bounds() (oldest, newest uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count == 0 {
		return g.last + 1, g.last
	}
	return g.at(0).Seq, g.last
}

// Cursor is a position in the journal. It holds no records, so a reader that stops reading costs
// nothing. It is not safe for concurrent use.
type Cursor struct {
	recorder *Recorder
	after    uint64
	records  []Record // reused
}

// Position returns the number of the last record that Next has returned or reported as lost.
func (c *Cursor) Position() uint64 { return c.after }

// Next returns the next records, at most limit. It waits until there is one. gap says which records
// before them are lost; records is empty if nothing follows the gap yet. The records are valid
// until the next call. The error is the cause of ctx, or says that the journal is closed.
func (c *Cursor) Next(ctx context.Context, limit int) (records []Record, gap Gap, err error) {
	for {
		var changed <-chan struct{}
		clear(c.records)
		c.records, gap, changed, err = c.recorder.ring.read(c.after, limit, c.records[:0])
		switch {
		case err != nil:
			return nil, Gap{}, err
		case gap != Gap{} || len(c.records) > 0:
			c.after = max(c.after, gap.To)
			if n := len(c.records); n > 0 {
				c.after = c.records[n-1].Seq
			}
			return c.records, gap, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, Gap{}, context.Cause(ctx)
		}
	}
}
