package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/fsnotify/fsnotify"
)

// bubbleWatcher is a watcher in a synctest bubble. The test sends its notifications.
type bubbleWatcher struct {
	*Watcher
	t      *testing.T
	dir    string
	events chan fsnotify.Event
	began  time.Time

	late bool // reports may lag behind the file's content

	mu  sync.Mutex
	log []string // the reports, each with its time
}

// inBubble runs a test with a watcher of these files in a temporary folder.
func inBubble(t *testing.T, files []string, test func(b *bubbleWatcher)) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bubbleWatcher{t: t, dir: dir, events: make(chan fsnotify.Event), began: time.Now()}
		src := silentSource()
		src.events = b.events
		b.Watcher = newWatcher(Options{Warn: func(err error) { t.Error(err) }}, src)
		go b.Watcher.watchFiles()
		defer b.Close()
		b.set(files...)
		test(b)
	})
}

func (b *bubbleWatcher) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bubbleWatcher) set(names ...string) {
	b.t.Helper()
	var t Targets
	for _, name := range names {
		t.Files = append(t.Files, b.path(name))
	}
	if err := b.Set(t); err != nil {
		b.t.Fatal(err)
	}
}

// put writes a file without a notification.
func (b *bubbleWatcher) put(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bubbleWatcher) notice(name string) {
	b.events <- fsnotify.Event{Name: b.path(name), Op: fsnotify.Write}
}

func (b *bubbleWatcher) write(name, content string) {
	b.t.Helper()
	b.put(name, content)
	b.notice(name)
}

// listen logs the reports from now on.
func (b *bubbleWatcher) listen() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for changes := range b.Changes(ctx) {
			var words []string
			for _, c := range changes {
				words = append(words, fmt.Sprintf("%v %s", c.Kind, filepath.Base(c.Path)))
				content, _ := os.ReadFile(c.Path)
				if c.Kind != Removed && !b.late && c.Hash != atomicfile.Hash(content) {
					b.t.Errorf("%s was reported with another content than %q", c.Path, content)
				}
			}
			b.mu.Lock()
			b.log = append(b.log, fmt.Sprint(time.Since(b.began).Milliseconds(), " ", strings.Join(words, ", ")))
			b.mu.Unlock()
		}
	}()
	return func() { cancel(); <-done }
}

// expect checks the reports since the last call.
func (b *bubbleWatcher) expect(want ...string) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.log, want) {
		b.t.Errorf("reported %q, want %q", b.log, want)
	}
	b.log = nil
}

func sleep(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) }

func TestQuietAndLimit(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(b *bubbleWatcher) {
		defer b.listen()()
		b.write("a", "1")
		sleep(150)
		b.write("b", "1")
		b.notice("other") // not watched
		sleep(199)
		b.expect()
		sleep(1)
		b.expect("350 created a, created b")
		for i := range 25 { // 1500 ms without rest, from 350 on
			b.write("a", fmt.Sprint(i))
			sleep(60)
		}
		b.expect("1350 modified a")
		sleep(500)
		b.expect("1990 modified a") // 200 ms after the last write
		sleep(4000)
		b.expect()
		if err := os.Remove(b.path("a")); err != nil {
			t.Fatal(err)
		}
		b.notice("a")
		sleep(300)
		b.expect("6550 removed a")
	})
}

// A file that is rewritten in halves without rest is reported once a second.
func TestRewritingWithoutRest(t *testing.T) {
	inBubble(t, []string{"a"}, func(b *bubbleWatcher) {
		defer b.listen()()
		for n := range 100 {
			whole := strings.Repeat(fmt.Sprint(n, " "), 1000)
			b.write("a", whole[:len(whole)/2])
			sleep(7)
			b.write("a", whole)
			sleep(12)
		}
		sleep(500)
		b.expect("1000 created a", "2007 modified a")
	})
}

func TestOnlyContentCounts(t *testing.T) {
	inBubble(t, []string{"a"}, func(b *bubbleWatcher) {
		defer b.listen()()
		b.write("a", "1")
		sleep(300)
		b.expect("200 created a")
		b.write("a", "1") // same content
		sleep(300)
		b.write("a", "2")
		sleep(100)
		b.write("a", "1") // back to the old content
		sleep(10000)
		b.expect()
	})
}

func TestNothingIsLostWithoutReader(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(b *bubbleWatcher) {
		b.write("a", "1")
		sleep(300)
		b.write("b", "1")
		sleep(300)
		b.write("a", "2")
		sleep(300)
		b.write("b", "2")
		if err := os.Remove(b.path("b")); err != nil {
			t.Fatal(err)
		}
		b.notice("b")
		sleep(1000)
		defer b.listen()()
		b.expect("1900 created a") // b was created and removed unnoticed
	})
}

func TestPoll(t *testing.T) {
	inBubble(t, []string{"a"}, func(b *bubbleWatcher) {
		b.put("a", "1")
		sleep(5100) // observed at 5000, at rest at 5200
		b.put("a", "2")
		stop := b.listen()
		sleep(1000)
		b.expect("5200 created a")
		b.put("a", "3")
		sleep(5000)
		b.expect("10200 modified a")
		stop()
		b.put("a", "4")
		sleep(10000)
		b.late = true
		b.put("a", "5") // while the last change waits for a reader
		sleep(3950)     // after a poll, before the rest
		defer b.listen()()
		sleep(2000)
		b.expect("25050 modified a", "25200 modified a")
	})
}

func TestExpected(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(b *bubbleWatcher) {
		defer b.listen()()
		announce := func(name, content string) {
			t.Helper()
			if err := b.Expect(b.path(name), atomicfile.Hash([]byte(content))); err != nil {
				t.Fatal(err)
			}
		}
		announce("a", "own 1")
		b.write("a", "own 1")
		sleep(1000)
		b.expect()
		b.write("a", "foreign")
		sleep(1000)
		b.expect("1200 modified a")
		announce("a", "own 2") // several announcements, of which only the last is written
		announce("a", "own 3")
		b.write("a", "own 3")
		announce("b", "own")
		b.write("b", "foreign") // another program was quicker
		sleep(1000)
		b.expect("2200 created b")
		b.write("a", "own 2") // by another program: no announcement holds any more
		sleep(1000)
		b.expect("3200 modified a")
		announce("a", "never")
		sleep(9000)
		b.expect()
		sleep(9000) // then the actual content is reported
		b.expect("15200 modified a")
		if err := b.Expect(b.path("a"), ""); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(b.path("a")); err != nil {
			t.Fatal(err)
		}
		b.notice("a")
		sleep(20000)
		b.expect()
		announce("other", "which is not watched")
		sleep(20000)
		b.expect()
	})
}

func TestSetWhileRunning(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(b *bubbleWatcher) {
		defer b.listen()()
		b.put("c", "before")
		b.put("a", "1")
		b.set("a", "c") // a has changed without a notification; c is new
		sleep(1000)
		b.expect("200 created a")
		b.write("b", "1") // no longer watched
		b.write("c", "2")
		sleep(1000)
		b.expect("1200 modified c")
		b.write("c", "3")
		b.set("a")
		sleep(6000)
		b.set("c")
		sleep(6000)
		b.expect()
	})
}

func TestPendingChangeOfRemovedTarget(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(b *bubbleWatcher) {
		b.write("a", "1")
		b.write("b", "1")
		sleep(1000) // without a reader
		b.set("b")
		defer b.listen()()
		sleep(1000)
		b.expect("1200 created b")
	})
}

func TestLostNotifications(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		src, errs := silentSource(), make(chan error)
		src.errors = errs
		w := newWatcher(Options{Quiet: time.Second, Limit: time.Second, Poll: time.Hour}, src)
		go w.watchFiles()
		defer w.Close()
		path := filepath.Join(dir, "a")
		if err := w.Set(Targets{Files: []string{path, path}}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		errs <- fsnotify.ErrEventOverflow
		for changes := range w.Changes(t.Context()) {
			if len(changes) != 1 || changes[0].Path != path || changes[0].Kind != Created || !changes[0].File {
				t.Errorf("%+v", changes)
			}
			break
		}
	})
}

func TestFoldersThatCannotBeWatched(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		src := silentSource()
		src.add = func(string) error { return fmt.Errorf("no space left on device") }
		var warned []string
		w := newWatcher(Options{Warn: func(err error) { warned = append(warned, err.Error()) }}, src)
		go w.watchFiles()
		path := filepath.Join(dir, "a")
		if err := w.Set(Targets{Files: []string{path}}); err != nil {
			t.Fatal(err)
		}
		sleep(20000)
		w.Close()
		if len(warned) != 1 {
			t.Errorf("warned %q", warned)
		}
	})
}

func TestClosed(t *testing.T) {
	w := New(Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range w.Changes(context.Background()) {
		}
	}()
	w.Close()
	w.Close()
	<-done
	if err := w.Set(Targets{}); err != ErrClosed {
		t.Error(err)
	}
	if err := w.Expect("x", "y"); err != ErrClosed {
		t.Error(err)
	}
}
