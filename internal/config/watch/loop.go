package watch

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// run owns all that is in the watcher until it is closed.
func (w *Watcher) run() {
	defer close(w.done)
	defer w.source.close()
	poll := time.NewTicker(w.opts.Poll)
	defer poll.Stop()
	w.timer = time.NewTimer(time.Hour)
	w.timer.Stop()
	defer w.timer.Stop()
	for {
		var out chan []Change // a nil channel is not sent on
		if len(w.pending.changes) > 0 {
			out = w.out
		}
		select {
		case <-w.stop:
			return
		case f := <-w.commands:
			f()
		case e := <-w.source.events:
			w.notice(e)
		case <-w.source.errors: // events may have been lost
			w.touch()
		case <-w.timer.C:
			w.began = time.Time{}
			w.look()
			w.settle()
		case <-poll.C:
			w.poll()
		case out <- w.pending.changes:
			w.delivered()
		}
	}
}

// notice takes a notice of the system.
func (w *Watcher) notice(e fsnotify.Event) {
	path := filepath.Clean(e.Name)
	if _, ok := w.watched[path]; ok && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
		w.unwatch(path) // the system may go on watching what is now elsewhere
	}
	if w.places.concern(path) {
		w.touch()
	}
}

// touch waits for the files to come to rest, but not longer than the limit.
func (w *Watcher) touch() {
	now := time.Now()
	if w.began.IsZero() {
		w.began = now
	}
	w.timer.Reset(min(w.opts.Quiet, w.began.Add(w.opts.Limit).Sub(now)))
}

// poll looks whether something has changed without notice. If so, it may be changing still.
func (w *Watcher) poll() {
	if !w.began.IsZero() {
		return
	}
	before := w.pending
	w.look()
	w.settle()
	if !maps.Equal(before.marks, w.pending.marks) {
		w.pending = before
		w.touch()
	}
}

// rounds bounds how often the files are looked at again because folders have appeared meanwhile.
const rounds = 5

// look sees what the files say, and has their folders watched from before that on.
func (w *Watcher) look() {
	for range rounds {
		s := w.survey()
		w.seen, w.places = s.seen, s.places
		if !w.arm() {
			break
		}
	}
	for path := range w.stamps {
		if _, ok := w.seen[path]; !ok {
			delete(w.stamps, path)
		}
	}
}

// pending are changes from what has been told to what was seen, which nobody has taken yet.
type pending struct {
	changes []Change
	marks   map[string]string // what was seen, by path
}

func (p *pending) add(path, was string, now sighting) {
	c := Change{Path: path, Kind: Modified, Hash: now.hash(), File: now.file, Globs: now.globs}
	switch {
	case now.mark == "":
		c.Kind = Removed
	case was == "":
		c.Kind = Created
	}
	p.changes, p.marks[path] = append(p.changes, c), now.mark
}

// settle finds the changes from what has been told to what is seen.
func (w *Watcher) settle() {
	w.meet(time.Now())
	w.pending = pending{marks: map[string]string{}}
	for path, now := range w.seen {
		if was := w.told[path]; was != now.mark {
			w.pending.add(path, was, now)
		}
	}
	for path, was := range w.told {
		if _, ok := w.seen[path]; !ok && was != "" {
			w.pending.add(path, was, w.targets.of(path))
		}
	}
	slices.SortFunc(w.pending.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
}

// delivered notes that somebody has taken the changes.
func (w *Watcher) delivered() {
	for path, mark := range w.pending.marks {
		w.expects = slices.DeleteFunc(w.expects, func(e expectation) bool { return e.path == path })
		if w.told[path] = mark; mark == "" {
			delete(w.told, path)
		}
	}
	w.pending = pending{}
}

// retarget begins to watch something else.
func (w *Watcher) retarget(next targets) {
	old := w.targets
	w.targets = next
	w.look()
	for path, now := range w.seen {
		if !old.of(path).watched() {
			w.told[path] = now.mark
		}
	}
	for path := range w.told {
		if !next.of(path).watched() {
			delete(w.told, path)
		}
	}
	w.expects = slices.DeleteFunc(w.expects, func(e expectation) bool { return !next.of(e.path).watched() })
	w.settle()
	if len(w.pending.changes) > 0 { // seen by chance, and perhaps not at rest
		w.pending = pending{}
		w.touch()
	}
}

// expectation is content that the caller has announced.
type expectation struct {
	path, hash string
	until      time.Time
}

// patience is how long an announced content is waited for.
const patience = 10 * time.Second

func (w *Watcher) expect(path, hash string) {
	until := time.Now().Add(patience)
	real, err := filepath.EvalSymlinks(path)
	for other := range w.seen {
		if other == path {
			continue
		}
		if r, e := filepath.EvalSymlinks(other); err == nil && e == nil && r == real { // another way to the same file
			w.expects = append(w.expects, expectation{other, hash, until})
		}
	}
	if w.targets.of(path).watched() {
		w.expects = append(w.expects, expectation{path, hash, until})
	}
}

// meet takes what is as announced for told, and what has not come for told too: the caller thinks it is there.
func (w *Watcher) meet(now time.Time) {
	for i := len(w.expects) - 1; i >= 0; i-- { // the newest first: it comes after those before it
		if i >= len(w.expects) {
			continue
		}
		e := w.expects[i]
		seen, there := w.seen[e.path]
		if met := there == (e.hash != "") && seen.hash() == e.hash; met || now.After(e.until) {
			w.told[e.path] = e.hash
			w.expects = slices.Concat(slices.DeleteFunc(w.expects[:i+1], func(o expectation) bool { return o.path == e.path }), w.expects[i+1:])
		}
	}
}

// folder is one that the system watches.
type folder struct{ info os.FileInfo }

// arm has the system watch the folders that matter, and no others. It reports whether one has come in.
func (w *Watcher) arm() (added bool) {
	for path := range w.watched {
		if !w.places.folders[path] {
			w.unwatch(path)
		}
	}
	for path := range w.places.folders {
		info, err := os.Stat(path)
		if err != nil {
			continue // gone since
		}
		if f, ok := w.watched[path]; ok {
			if os.SameFile(f.info, info) {
				continue
			}
			w.unwatch(path)
		}
		if err := w.source.add(path); err != nil {
			w.warn(path, err)
			continue
		}
		w.watched[path] = folder{info}
		added = true
	}
	return added
}

func (w *Watcher) unwatch(path string) {
	_ = w.source.remove(path) // it may be gone
	delete(w.watched, path)
}
