package timeout_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/timeout"
)

// thing notes when it expires.
type thing struct {
	timeout.Entry
	name  string
	began time.Time
	log   *[]string // one expires at a time here
}

func (e *thing) Expire() { *e.log = append(*e.log, e.name+" "+time.Since(e.began).String()) }

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := timeout.New(time.Second), time.Now()
		var log []string
		start := func(name string) *thing {
			e := &thing{name: name, began: began, log: &log}
			q.Start(&e.Entry, e)
			return e
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(log, want) {
				t.Errorf("%v after %v, want %v", log, time.Since(began), want)
			}
			log = nil
		}
		first, second := start("first"), start("second")
		time.Sleep(600 * time.Millisecond)
		third, fourth := start("third"), start("fourth")
		q.Stop(&first.Entry) // the head; its timer still runs
		q.Stop(&third.Entry) // one in the middle
		time.Sleep(500 * time.Millisecond)
		expect("second 1s")
		q.Stop(&second.Entry) // has expired
		time.Sleep(time.Second)
		expect("fourth 1.6s")
		fifth := start("fifth") // after the timer has stopped
		q.Stop(&fifth.Entry)
		q.Start(&fifth.Entry, fifth)
		time.Sleep(2 * time.Second)
		expect("fifth 3.1s")
		last := start("last")
		q.Stop(&last.Entry) // the only one
		q.Stop(&fourth.Entry)
		time.Sleep(2 * time.Second)
		expect()
	})
}

func TestStartAllocatesNothing(t *testing.T) {
	q, e := timeout.New(time.Hour), &thing{}
	q.Start(&e.Entry, e)
	q.Stop(&e.Entry)
	if n := testing.AllocsPerRun(100, func() { q.Start(&e.Entry, e); q.Stop(&e.Entry) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
