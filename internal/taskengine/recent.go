package taskengine

import (
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

const (
	// maxRecent bounds the number of records in memory, and maxRecentBytes their size.
	maxRecent      = 1000
	maxRecentBytes = 16 << 20
)

// recentRecords keeps the newest versions of the records that were used last. All changes of the
// folder are made by this process, so a poll need not read the disk.
type recentRecords struct {
	mu    sync.Mutex
	byID  map[string]*tasks.Record
	bytes int
	drops int // how often a record was dropped
}

func newRecentRecords() *recentRecords { return &recentRecords{byID: map[string]*tasks.Record{}} }

// get returns a record that has not expired, or nil.
func (c *recentRecords) get(id string) *tasks.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.byID[id]
	if r != nil && !time.Now().Before(r.Expires()) {
		c.drop(id)
		return nil
	}
	return r
}

// putLoaded keeps a record that was read from the disk. drops is the result of dropCount before the
// read. If a record was dropped since then, putLoaded keeps nothing: the dropped record may have
// been a newer version of this one.
func (c *recentRecords) putLoaded(r *tasks.Record, drops int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops == drops {
		c.putLocked(r)
	}
}

// dropCount returns how often a record was dropped.
func (c *recentRecords) dropCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops
}

// put keeps a record, unless a newer version is known. It makes room by dropping others.
func (c *recentRecords) put(r *tasks.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(r)
}

// putLocked is put for callers that hold c.mu.
func (c *recentRecords) putLocked(r *tasks.Record) {
	if known := c.byID[r.ID]; known != nil && known.Version >= r.Version {
		return
	}
	c.drop(r.ID)
	size := recordSize(r)
	if size > maxRecentBytes {
		c.drops++ // of this record
		return
	}
	for id := range c.byID {
		if len(c.byID) < maxRecent && c.bytes+size <= maxRecentBytes {
			break
		}
		c.drop(id)
	}
	c.byID[r.ID] = r
	c.bytes += size
}

// remove drops a record that may differ from the disk.
func (c *recentRecords) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
}

// drop is remove for callers that hold c.mu.
func (c *recentRecords) drop(id string) {
	if r := c.byID[id]; r != nil {
		c.drops++
		delete(c.byID, id)
		c.bytes -= recordSize(r)
	}
}

// recordSize returns about how many bytes a record needs.
func recordSize(r *tasks.Record) int {
	return 500 + len(r.Params) + len(r.State) + len(r.Result) + len(r.Error)
}
