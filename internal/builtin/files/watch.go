package files

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// target is something that somebody listens to: a file or folder by a URI, in the client's spelling; the list of resources,
// as far as it depends on a root, where there is no URI.
type target struct {
	place place
	uri   string
}

// watcher looks after files as long as there is somebody to tell: when the system gives notice of something in their
// folders, and every now and then besides, for what it gives no notice of (network drives, targets of links). It looks
// through the [os.Root], so that what a notice is about cannot mislead it.
type watcher struct {
	poll time.Duration
	tell func(target)

	mu      sync.Mutex
	watched map[target]*watched
	folders map[string]int // where notices are wanted, with how many targets want them
	loop    *loop          // runs while anything is watched
	closed  bool
}

// watched is what is known of a target.
type watched struct {
	count  int    // of those who listen
	folder string // of which notices tell of it
	seen   mark
}

// settle is how long a change is waited with, for others of the same file.
const settle = 100 * time.Millisecond

func newWatcher(poll time.Duration, tell func(target)) *watcher {
	return &watcher{poll: poll, tell: tell, watched: map[target]*watched{}, folders: map[string]int{}}
}

// retain watches a target from now on, until it is released as often; false if there are too many.
func (w *watcher) retain(t target) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.watched[t]
	if known == nil {
		if w.closed || len(w.watched) >= MaxWatched {
			return false
		}
		known = &watched{folder: noticesOf(t)}
		w.watched[t] = known
		if w.loop == nil {
			w.loop = w.start()
		}
		if w.folders[known.folder]++; w.folders[known.folder] == 1 {
			w.loop.add(known.folder)
		}
		known.seen = look(t, mark{}) // after the notices have begun
	}
	known.count++
	return true
}

// noticesOf returns the folder in which the system is to notice changes of a target.
func noticesOf(t target) string {
	at, err := t.place.resolve()
	if err != nil {
		at = t.place
	}
	if info, err := at.root.Lstat(at.name); at.isRoot() || err == nil && info.IsDir() {
		return filepath.Join(at.root.real, at.name)
	}
	return filepath.Join(at.root.real, filepath.Dir(at.name))
}

// release undoes retain. With the last target the watching ends, which is waited for.
func (w *watcher) release(all []target) {
	w.mu.Lock()
	for _, t := range all {
		known := w.watched[t]
		if known == nil {
			continue // since the watcher was closed
		}
		if known.count--; known.count > 0 {
			continue
		}
		delete(w.watched, t)
		if w.folders[known.folder]--; w.folders[known.folder] == 0 {
			delete(w.folders, known.folder)
			w.loop.remove(known.folder)
		}
	}
	var over *loop
	if len(w.watched) == 0 {
		over, w.loop = w.loop, nil
	}
	w.mu.Unlock()
	over.end()
}

// close ends the watching for good, and waits for that.
func (w *watcher) close() error {
	w.mu.Lock()
	w.closed = true
	clear(w.watched)
	clear(w.folders)
	over := w.loop
	w.loop = nil
	w.mu.Unlock()
	over.end()
	return nil
}

// check looks at the targets in some folders, or at all of them, and tells of those that have changed.
func (w *watcher) check(folders map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, known := range w.watched {
		if folders != nil && !folders[known.folder] {
			continue
		}
		now := look(t, known.seen)
		if changed := now.differs(known.seen); changed {
			w.tell(t) // which waits for nobody
		}
		known.seen = now
	}
}

// wanted returns the folders of which notices are wanted.
func (w *watcher) wanted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for folder := range w.folders {
		all = append(all, folder)
	}
	return all
}

// start starts the loop. The watcher is locked.
func (w *watcher) start() *loop {
	l := &loop{stop: make(chan struct{}), done: make(chan struct{})}
	if notices, err := fsnotify.NewWatcher(); err == nil { // else looking every now and then has to do
		l.notices = notices
	}
	go l.run(w)
	return l
}
