package taskengine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/tasks"
)

// idOf returns the id of the record with a number.
func idOf(n int) string {
	return "A" + strings.NewReplacer("0", "X", "1", "Y", "8", "Z", "9", "W").Replace(fmt.Sprint(n))
}

// openEngine opens the engine of a server that does not sync.
func openEngine(t *testing.T) *Engine {
	t.Helper()
	_, js := natstest.Connect(t, natstest.Start(t, nil))
	e, err := Open(t.Context(), js, Options{Runner: "one"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Records that vanish while all are read are not waited for.
func TestRecordsVanishWhileRead(t *testing.T) {
	e := openEngine(t)
	for n := range 700 { // more than the server sends at once
		if err := e.Create(t.Context(), newRecord(idOf(n), "ann"), 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := 0
	e.seen = 0
	err := e.readNew(ctx, func(*entry) {
		if read++; read == 1 {
			if err := e.stream.Purge(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || read == 0 || read == 700 {
		t.Errorf("%d records, %v", read, err)
	}
}

// The engine forgets the expired records of owners that never come back.
func TestExpiredRecordsAreForgotten(t *testing.T) {
	e := openEngine(t)
	for n := range 50 {
		r := newRecord(idOf(n), "once"+idOf(n))
		r.Created = time.Now().Add(-r.TTL)
		e.note(newEntry(r))
	}
	for n := range 200 {
		if err := e.Create(t.Context(), newRecord(idOf(100+n), "ann"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.known) != 200 || len(e.owned) != 1 {
		t.Errorf("%d records of %d owners are remembered, want 200 of 1", len(e.known), len(e.owned))
	}
}

// A result is the same text after a restart.
func TestResultStaysTheSame(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tasks")
	const result = `{"text":"<b> & \u00e9"}`
	d := openDisk(t, folder)
	r := newRecord("AAAA", "ann")
	r.Result = []byte(result)
	if err := d.Create(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if r, err := openDisk(t, folder).Load(t.Context(), "AAAA"); err != nil || string(r.Result) != result {
		t.Errorf("%s, %v", r.Result, err)
	}
}

// A record above the limit of the server is refused, and the version before stays.
func TestLargeRecords(t *testing.T) {
	e := openEngine(t)
	id := idOf(1)
	if err := e.Create(t.Context(), newRecord(id, "ann"), 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := tasks.Update(t.Context(), e, id, func(next *tasks.Record) bool {
		next.Result = []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
		return true
	})
	if !errors.Is(err, tasks.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if r, err := e.Load(t.Context(), id); err != nil || r.Result != nil {
		t.Errorf("%v, %v", r, err)
	}
}
