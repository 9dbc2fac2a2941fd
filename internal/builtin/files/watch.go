package files

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// target is a watched file or folder, with its URI in the client's spelling. Without a URI, it is
// the list of resources, as far as it depends on a root.
type target struct {
	place place
	uri   string
}

// watcher reports changes of files while a client is subscribed to them. It looks at them when the
// system gives notice of a change in their folders, and at intervals, because some changes come
// without a notice (network drives, targets of links). It looks through the [os.Root], so a
// misleading notice does no harm.
type watcher struct {
	poll time.Duration
	tell func(target)

	mu      sync.Mutex
	watched map[target]*watched
	folders map[string]int // where notices are wanted, with how many targets want them
	loop    *loop          // runs while anything is watched
	closed  bool
}

// watched is the state of a target.
type watched struct {
	count  int    // of subscribers
	folder string // of which notices tell of it
	seen   fingerprint
}

// settle is how long a change is waited with, for others of the same file.
const settle = 100 * time.Millisecond

func newWatcher(poll time.Duration, tell func(target)) *watcher {
	return &watcher{poll: poll, tell: tell, watched: map[target]*watched{}, folders: map[string]int{}}
}

// watchTarget watches a target from now on, until it is released as often; false if there are too
// many.
func (w *watcher) watchTarget(t target) bool {
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
			w.loop = w.startLoop()
		}
		if w.folders[known.folder]++; w.folders[known.folder] == 1 {
			w.loop.addFolder(known.folder)
		}
		known.seen = takeFingerprint(t, fingerprint{}) // after the notices have begun
	}
	known.count++
	return true
}

// noticesOf returns the folder in which the system is to notice changes of a target.
func noticesOf(t target) string {
	at, err := t.place.resolveLinks()
	if err != nil {
		at = t.place
	}
	if info, err := at.root.Lstat(at.name); at.isRoot() || err == nil && info.IsDir() {
		return filepath.Join(at.root.real, at.name)
	}
	return filepath.Join(at.root.real, filepath.Dir(at.name))
}

// releaseTargets undoes retain. With the last target the watching ends, which is waited for.
func (w *watcher) releaseTargets(all []target) {
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
			w.loop.removeFolder(known.folder)
		}
	}
	var over *loop
	if len(w.watched) == 0 {
		over, w.loop = w.loop, nil
	}
	w.mu.Unlock()
	over.stopLoop()
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
	over.stopLoop()
	return nil
}

// checkTargets looks at the targets in some folders, or at all if folders is nil, and reports those
// that have changed.
func (w *watcher) checkTargets(folders map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, known := range w.watched {
		if folders != nil && !folders[known.folder] {
			continue
		}
		now := takeFingerprint(t, known.seen)
		if changed := now.differsFrom(known.seen); changed {
			w.tell(t) // does not block
		}
		known.seen = now
	}
}

// wantedFolders returns the folders of which notices are wanted.
func (w *watcher) wantedFolders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for folder := range w.folders {
		all = append(all, folder)
	}
	return all
}

// startLoop starts the loop. The watcher is locked.
func (w *watcher) startLoop() *loop {
	l := &loop{stop: make(chan struct{}), done: make(chan struct{})}
	if notices, err := fsnotify.NewWatcher(); err == nil { // else looking every now and then has to do
		l.notices = notices
	}
	go l.run(w)
	return l
}
