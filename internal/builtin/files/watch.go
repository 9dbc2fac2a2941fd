package files

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// target is a watched file or folder with its URI as the client wrote it, or, if uri is empty, the
// part of the resource list that comes from the root at place.
type target struct {
	place place
	uri   string
}

// watcher reports changes of files while clients are subscribed to them. It checks a file after the
// operating system has sent a notification for its folder, and also at intervals, because some
// changes cause no notification (network drives, targets of links). A check goes through the
// [os.Root], so a misleading notification does no harm.
type watcher struct {
	poll time.Duration
	tell func(target) // called with mu held; must not block

	mu      sync.Mutex
	watched map[target]*watched
	folders map[string]int // for each folder with notifications, the number of targets that need them
	loop    *loop          // nil if nothing is watched
	closed  bool
}

// watched is the state of a target.
type watched struct {
	count  int    // the number of subscriptions
	folder string // its notifications report changes of the target
	seen   fingerprint
}

// settle is the time between a notification and the check, in which further changes are collected.
const settle = 100 * time.Millisecond

func newWatcher(poll time.Duration, tell func(target)) *watcher {
	return &watcher{poll: poll, tell: tell, watched: map[target]*watched{}, folders: map[string]int{}}
}

// watchTarget watches a target until releaseTargets has been called for it as often. It returns
// false if MaxWatched targets are watched already, or if the watcher is closed.
func (w *watcher) watchTarget(t target) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.watched[t]
	if known == nil {
		if w.closed || len(w.watched) >= MaxWatched {
			return false
		}
		known = &watched{folder: notifyingFolder(t)}
		w.watched[t] = known
		if w.loop == nil {
			w.loop = w.startLoop()
		}
		if w.folders[known.folder]++; w.folders[known.folder] == 1 {
			w.loop.addFolder(known.folder)
		}
		known.seen = takeFingerprint(t, fingerprint{}) // after addFolder, so that no change is missed between them
	}
	known.count++
	return true
}

// notifyingFolder returns the folder whose notifications report changes of a target.
func notifyingFolder(t target) string {
	at, err := t.place.resolveLinks()
	if err != nil {
		at = t.place
	}
	if info, err := at.root.Lstat(at.name); at.isRoot() || err == nil && info.IsDir() {
		return filepath.Join(at.root.real, at.name)
	}
	return filepath.Join(at.root.real, filepath.Dir(at.name))
}

// releaseTargets undoes watchTarget. After the last target, it stops the loop and waits for its
// end.
func (w *watcher) releaseTargets(all []target) {
	w.mu.Lock()
	for _, t := range all {
		known := w.watched[t]
		if known == nil {
			continue // the watcher was closed
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
	var unused *loop
	if len(w.watched) == 0 {
		unused, w.loop = w.loop, nil
	}
	w.mu.Unlock()
	unused.stopLoop()
}

// closeWatcher releases all targets, and waits for the end of the loop. Later calls of watchTarget
// fail.
func (w *watcher) closeWatcher() error {
	w.mu.Lock()
	w.closed = true
	clear(w.watched)
	clear(w.folders)
	stopped := w.loop
	w.loop = nil
	w.mu.Unlock()
	stopped.stopLoop()
	return nil
}

// checkTargets checks the targets in the folders, or all if folders is nil, and reports the changed
// ones.
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

// wantedFolders returns the folders whose notifications are needed.
func (w *watcher) wantedFolders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for folder := range w.folders {
		all = append(all, folder)
	}
	return all
}

// startLoop starts the loop. The caller holds w.mu.
func (w *watcher) startLoop() *loop {
	l := &loop{stop: make(chan struct{}), done: make(chan struct{})}
	if notifier, err := fsnotify.NewWatcher(); err == nil { // otherwise the loop only polls
		l.notifier = notifier
	}
	go l.runLoop(w)
	return l
}
