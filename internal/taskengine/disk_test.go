package taskengine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

func newRecord(id, owner string) *tasks.Record {
	now := time.Now()
	return &tasks.Record{ID: id, Owner: owner, Tool: "t", Status: tasks.Working, Created: now, Updated: now, TTL: time.Hour}
}

func openDisk(t *testing.T, folder string) *Disk {
	t.Helper()
	d := OnDisk(folder)
	t.Cleanup(func() { d.Close() })
	return d
}

// Records outlive the process, and their tasks are then orphans.
func TestDiskOutlivesProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tasks")
	d := openDisk(t, folder)
	if _, err := d.Load(t.Context(), "AAAA"); !errors.Is(err, tasks.ErrUnknown) {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Error("the store has started before the first task")
	}
	for _, id := range []string{"AAAA", "BBBB"} {
		if err := d.Create(t.Context(), newRecord(id, "ann"), 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Create(t.Context(), newRecord("CCCC", "ann"), 2); !errors.Is(err, tasks.ErrTooMany) {
		t.Error(err)
	}
	if err := d.Create(t.Context(), newRecord("AAAA", "bob"), 2); !errors.Is(err, tasks.ErrConflict) {
		t.Error(err)
	}
	stale, err := d.Load(t.Context(), "AAAA")
	if err != nil {
		t.Fatal(err)
	}
	if _, stored, err := tasks.Update(t.Context(), d, "AAAA", func(r *tasks.Record) bool { r.Status = tasks.Completed; return true }); err != nil || !stored {
		t.Fatal(stored, err)
	}
	if err := d.Replace(t.Context(), stale.Clone()); !errors.Is(err, tasks.ErrConflict) {
		t.Error(err)
	}
	if err := d.Replace(t.Context(), newRecord("DDDD", "ann")); !errors.Is(err, tasks.ErrUnknown) {
		t.Error(err)
	}
	other := openDisk(t, folder)
	if err := other.Prepare(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second process: %v", err)
	}
	d.Close()
	if err := d.Prepare(); err == nil {
		t.Error("a closed store starts again")
	}

	again := openDisk(t, folder)
	r, err := again.Load(t.Context(), "AAAA")
	if err != nil || r.Status != tasks.Completed {
		t.Fatal(r, err)
	}
	if r, err = again.Load(t.Context(), "BBBB"); err != nil || r.Status != tasks.Working || !again.IsGone(r.Runner) {
		t.Error(r, err)
	}
	own, err := again.List(t.Context(), "ann")
	if err != nil || len(own) != 2 || own[0].ID != "AAAA" {
		t.Error(own, err)
	}
	if open, err := again.ListTool(t.Context(), "t"); err != nil || len(open) != 1 || open[0].ID != "BBBB" {
		t.Error(open, err)
	}
	if err := again.Create(t.Context(), newRecord("EEEE", "ann"), 2); !errors.Is(err, tasks.ErrTooMany) {
		t.Errorf("the records of the earlier process do not count: %v", err)
	}
}

// Records expire by themselves, and ids that are no ids reach no subject.
func TestDiskExpires(t *testing.T) {
	d := openDisk(t, filepath.Join(t.TempDir(), "tasks"))
	r := newRecord("AAAA", "ann")
	r.TTL = time.Second
	if err := d.Create(t.Context(), r, 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(r.Expires()))
	if _, err := d.Load(t.Context(), "AAAA"); !errors.Is(err, tasks.ErrUnknown) {
		t.Error(err)
	}
	if err := d.Create(t.Context(), newRecord("BBBB", "ann"), 1); err != nil {
		t.Errorf("an expired record counts: %v", err)
	}
	for _, id := range []string{"", ">", "*", "a.b", strings.Repeat("A", 65)} {
		if _, err := d.Load(t.Context(), id); !errors.Is(err, tasks.ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// A folder that cannot be made is an error that names it, and the store works when it can be made.
// Fault tells the error, and starts nothing.
func TestDiskCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDisk(t, filepath.Join(file, "tasks"))
	if fault, _ := d.Fault(); fault != nil {
		t.Errorf("a fault before the first task: %v", fault)
	}
	err := d.Create(t.Context(), newRecord("AAAA", ""), 1)
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Fatal(err)
	}
	if fault, when := d.Fault(); fault == nil || fault.Error() != err.Error() || when.IsZero() {
		t.Errorf("the fault is %v at %v, want %v", fault, when, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("Fault has started the store")
	}
	if err := d.Create(t.Context(), newRecord("AAAA", ""), 1); err != nil {
		t.Error(err)
	}
	if fault, _ := d.Fault(); fault != nil {
		t.Errorf("a fault after a stored task: %v", fault)
	}
}
