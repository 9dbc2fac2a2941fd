package taskengine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/tasks"
)

// On a full disk, a change of a task is refused with the reason. No change that was acknowledged is
// lost, and the store works again as soon as there is room, in the same process.
func TestFullDisk(t *testing.T) {
	folder := natstest.SmallDisk(t, 32<<20)
	d := openDisk(t, filepath.Join(folder, "tasks"))
	var ids []string
	create := func() error {
		r := newRecord(fmt.Sprintf("A%c%cA", 'A'+len(ids)/26, 'A'+len(ids)%26), "ann")
		r.Params = []byte(`{"x":"` + strings.Repeat("x", 10<<10) + `"}`)
		err := d.Create(t.Context(), r, 0)
		if err == nil {
			ids = append(ids, r.ID)
		}
		return err
	}
	for range 20 {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	runner := d.Runner()
	free := natstest.FillDisk(t, folder)
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = create()
	}
	if err == nil {
		t.Fatal("a full disk takes everything")
	}
	t.Log(err)
	if errors.Is(err, tasks.ErrConflict) || errors.Is(err, tasks.ErrUnknown) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("the error does not name the disk: %v", err)
	}
	if again := create(); again == nil || !strings.Contains(again.Error(), "cannot be kept in") {
		t.Errorf("the second error: %v", again)
	}
	if err := d.Prepare(); err == nil { // the server may start, which proves nothing
		t.Log("the server runs")
	}
	if fault, _ := d.Fault(); fault == nil || !strings.Contains(fault.Error(), "cannot be kept in") {
		t.Errorf("the fault is %v", fault)
	}
	free()
	if err := create(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if fault, _ := d.Fault(); fault != nil {
		t.Errorf("a fault with room again: %v", fault)
	}
	if d.Runner() != runner {
		t.Error("the tasks of this process count as those of another one")
	}
	for _, id := range ids {
		if _, err := d.Load(t.Context(), id); err != nil {
			t.Errorf("%s of %d is lost: %v", id, len(ids), err)
		}
	}
	if _, stored, err := tasks.Update(t.Context(), d, ids[0], func(r *tasks.Record) bool { r.Status = tasks.Completed; return true }); err != nil || !stored {
		t.Errorf("an old task cannot end: %v, %v", stored, err)
	}
	d.Close()
	d = openDisk(t, filepath.Join(folder, "tasks"))
	for i, id := range ids {
		if r, err := d.Load(t.Context(), id); err != nil || (r.Status == tasks.Completed) != (i == 0) {
			t.Errorf("%s of %d after a restart: %v, %v", id, len(ids), r != nil, err)
		}
	}
}
