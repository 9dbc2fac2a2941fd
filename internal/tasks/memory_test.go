package tasks

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newRecord(id, owner string) *Record {
	return &Record{ID: id, Owner: owner, Status: Working, Created: time.Now(), TTL: time.Minute}
}

// Changes that race are all applied: each one sees the record that the one before has stored.
func TestUpdateLosesNoChange(t *testing.T) {
	t.Parallel()
	m := &Memory{}
	if err := m.Create(t.Context(), newRecord("a", ""), 0); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, stored, err := Update(t.Context(), m, "a", func(r *Record) bool { r.Asked++; return true }); !stored || err != nil {
					t.Error(stored, err)
				}
			}
		})
	}
	wg.Wait()
	if r, err := m.Load(t.Context(), "a"); err != nil || r.Asked != 400 || r.Version != 401 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReplaceOfAnOldVersionConflicts(t *testing.T) {
	t.Parallel()
	m := &Memory{}
	if err := m.Create(t.Context(), newRecord("a", ""), 0); err != nil {
		t.Fatal(err)
	}
	first, _ := m.Load(t.Context(), "a")
	second := first.Clone()
	if err := m.Replace(t.Context(), first.Clone()); err != nil {
		t.Fatal(err)
	}
	if err := m.Replace(t.Context(), second); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v", err)
	}
	if _, stored, err := Update(t.Context(), m, "a", func(*Record) bool { return false }); stored || err != nil {
		t.Errorf("a change that gives up: %v, %v", stored, err)
	}
	if err := m.Replace(t.Context(), newRecord("b", "")); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

// A record is there until its time to live is over, and then it is gone and counts no longer.
func TestRecordsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{}
		for i, want := range []error{nil, nil, ErrTooMany} {
			if err := m.Create(t.Context(), newRecord(strconv.Itoa(i), "ann"), 2); !errors.Is(err, want) {
				t.Errorf("task %d: %v", i, err)
			}
		}
		if err := m.Create(t.Context(), newRecord("bob's", "bob"), 2); err != nil {
			t.Error(err)
		}
		if _, _, err := Update(t.Context(), m, "1", func(r *Record) bool { r.TTL = 2 * time.Minute; return true }); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if _, err := m.Load(t.Context(), "0"); err != nil {
			t.Errorf("before its time: %v", err)
		}
		time.Sleep(time.Second)
		_, err := m.Load(context.Background(), "0")
		_, longer := m.Load(t.Context(), "1")
		if !errors.Is(err, ErrUnknown) || longer != nil {
			t.Errorf("%v, %v", err, longer)
		}
		if got := countRecords(m); got != [2]int{1, 1} {
			t.Errorf("%d records of %d owners", got[0], got[1])
		}
		time.Sleep(2 * time.Minute)
		if got := countRecords(m); got != [2]int{} {
			t.Errorf("%d records of %d owners", got[0], got[1])
		}
	})
}

// countRecords returns the number of records and of their owners, after the timers that are due.
func countRecords(m *Memory) [2]int {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return [2]int{m.entries.Len(), m.owners.Len()}
}
