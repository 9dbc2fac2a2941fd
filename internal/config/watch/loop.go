package watch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchFiles owns the watcher's state until the watcher is closed.
func (w *Watcher) watchFiles() {
	defer close(w.done)
	defer w.source.close()
	poll := time.NewTicker(w.options.Poll)
	defer poll.Stop()
	w.settleTimer = time.NewTimer(time.Hour)
	w.settleTimer.Stop()
	defer w.settleTimer.Stop()
	for {
		var out chan []Change // nil, which disables the send, without changes
		if len(w.pending.changes) > 0 {
			out = w.deliveries
		}
		select {
		case <-w.stop:
			return
		case f := <-w.commands:
			f()
		case e := <-w.source.events:
			w.handleEvent(e)
		case <-w.source.errors: // notifications may have been lost
			w.startSettling()
		case <-w.settleTimer.C:
			w.settlingSince = time.Time{}
			w.scanFiles()
			w.computeChanges()
		case <-poll.C:
			w.pollFiles()
		case out <- w.pending.changes:
			w.markDelivered()
		}
	}
}

// handleEvent handles a notification of the system.
func (w *Watcher) handleEvent(e fsnotify.Event) {
	path := filepath.Clean(e.Name)
	if _, ok := w.folders[path]; ok && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
		w.unwatchFolder(path) // the system may continue to watch the folder under its new name
	}
	if w.points.isRelevant(path) {
		w.startSettling()
	}
}

// startSettling waits until the files are at rest, but no longer than the limit.
func (w *Watcher) startSettling() {
	now := time.Now()
	if w.settlingSince.IsZero() {
		w.settlingSince = now
	}
	w.settleTimer.Reset(min(w.options.Quiet, w.settlingSince.Add(w.options.Limit).Sub(now)))
}

// pollFiles checks for changes without a notification. If it finds one, the file may still be
// changing, so it waits for rest.
func (w *Watcher) pollFiles() {
	if !w.settlingSince.IsZero() {
		return
	}
	before := w.pending
	w.scanFiles()
	w.computeChanges()
	if !maps.Equal(before.fingerprints, w.pending.fingerprints) {
		w.pending = before
		w.startSettling()
	}
}

// maxScanRounds limits the repeated scans that are needed when folders appear during a scan.
const maxScanRounds = 5

// scanFiles reads the files. Their folders are watched before the last scan, so that no later
// change is missed.
func (w *Watcher) scanFiles() {
	for range maxScanRounds {
		s := w.newScan()
		w.observed, w.points = s.files, s.points
		if !w.watchFolders() {
			break
		}
	}
	for path := range w.stamps {
		if _, ok := w.observed[path]; !ok {
			delete(w.stamps, path)
		}
	}
}

// pendingChanges are the changes since the last report that no reader has taken yet.
type pendingChanges struct {
	changes      []Change
	fingerprints map[string]string // the observed fingerprints, by path
}

// addChange adds the change of a file from an earlier fingerprint, was, to its state now.
func (p *pendingChanges) addChange(path, was string, now fileState) {
	c := Change{Path: path, Kind: Modified, Hash: now.contentHash(), File: now.file, Globs: now.globs}
	switch {
	case now.fingerprint == "":
		c.Kind = Removed
	case was == "":
		c.Kind = Created
	}
	p.changes, p.fingerprints[path] = append(p.changes, c), now.fingerprint
}

// computeChanges computes the changes from the reported to the observed state.
func (w *Watcher) computeChanges() {
	w.resolveExpectations(time.Now())
	w.pending = pendingChanges{fingerprints: map[string]string{}}
	for path, now := range w.observed {
		if was := w.reported[path]; was != now.fingerprint {
			w.pending.addChange(path, was, now)
		}
	}
	for path, was := range w.reported {
		if _, ok := w.observed[path]; !ok && was != "" {
			w.pending.addChange(path, was, w.targets.stateOf(path))
		}
	}
	slices.SortFunc(w.pending.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
}

// markDelivered records that a reader has taken the changes.
func (w *Watcher) markDelivered() {
	for path, fingerprint := range w.pending.fingerprints {
		w.expectations = slices.DeleteFunc(w.expectations, func(e expectation) bool { return e.path == path })
		if w.reported[path] = fingerprint; fingerprint == "" {
			delete(w.reported, path)
		}
	}
	w.pending = pendingChanges{}
}

// setTargets replaces the targets.
func (w *Watcher) setTargets(next targets) {
	old := w.targets
	w.targets = next
	w.scanFiles()
	for path, now := range w.observed {
		if !old.stateOf(path).isWatched() {
			w.reported[path] = now.fingerprint
		}
	}
	for path := range w.reported {
		if !next.stateOf(path).isWatched() {
			delete(w.reported, path)
		}
	}
	w.expectations = slices.DeleteFunc(w.expectations, func(e expectation) bool { return !next.stateOf(e.path).isWatched() })
	w.computeChanges()
	if len(w.pending.changes) > 0 { // noticed by chance, and perhaps not at rest
		w.pending = pendingChanges{}
		w.startSettling()
	}
}

// expectation is content that the caller has announced.
type expectation struct {
	path, hash string
	until      time.Time
}

// expectationTimeout limits the wait for announced content.
const expectationTimeout = 10 * time.Second

// addExpectation records announced content for path, and for every other watched path of the same
// file.
func (w *Watcher) addExpectation(path, hash string) {
	until := time.Now().Add(expectationTimeout)
	real, err := filepath.EvalSymlinks(path)
	for other := range w.observed {
		if other == path {
			continue
		}
		if r, e := filepath.EvalSymlinks(other); err == nil && e == nil && r == real { // another path of the same file
			w.expectations = append(w.expectations, expectation{other, hash, until})
		}
	}
	if w.targets.stateOf(path).isWatched() {
		w.expectations = append(w.expectations, expectation{path, hash, until})
	}
}

// resolveExpectations treats announced content that has appeared as reported. It does the same if
// the time is over: the caller then learns that the file differs.
func (w *Watcher) resolveExpectations(now time.Time) {
	for i := len(w.expectations) - 1; i >= 0; i-- { // newest first: it replaces the older ones
		if i >= len(w.expectations) {
			continue
		}
		e := w.expectations[i]
		seen, there := w.observed[e.path]
		if met := there == (e.hash != "") && seen.contentHash() == e.hash; met || now.After(e.until) {
			w.reported[e.path] = e.hash
			w.expectations = slices.Concat(slices.DeleteFunc(w.expectations[:i+1], func(o expectation) bool { return o.path == e.path }), w.expectations[i+1:])
		}
	}
}

// folder is a folder that the system watches.
type folder struct{ info os.FileInfo }

// watchFolders makes the system watch exactly the folders of the last scan. It reports whether a
// folder was added.
func (w *Watcher) watchFolders() (added bool) {
	for path := range w.folders {
		if !w.points.folders[path] {
			w.unwatchFolder(path)
		}
	}
	for path := range w.points.folders {
		info, err := os.Stat(path)
		if err != nil {
			continue // removed meanwhile
		}
		if f, ok := w.folders[path]; ok {
			if os.SameFile(f.info, info) {
				continue
			}
			w.unwatchFolder(path)
		}
		if err := w.source.add(path); err != nil {
			w.warnOnce(path, err)
			continue
		}
		w.folders[path] = folder{info}
		added = true
	}
	return added
}

func (w *Watcher) unwatchFolder(path string) {
	_ = w.source.remove(path) // fails if the folder was removed
	delete(w.folders, path)
}

// source delivers the system's notifications of changes in folders.
type source struct {
	add, remove func(folder string) error
	close       func() error
	events      <-chan fsnotify.Event
	errors      <-chan error
}

// newSource returns a source of system notifications. If the system offers none, it returns an
// error and a silent source.
func newSource() (*source, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return silentSource(), err
	}
	add := func(folder string) error {
		if err := n.Add(folder); err != nil {
			return fmt.Errorf("the system does not report changes in %s, which is checked from time to time: %w", folder, err)
		}
		return nil
	}
	return &source{add, n.Remove, n.Close, n.Events, n.Errors}, nil
}

// silentSource returns a source without notifications.
func silentSource() *source {
	nothing := func(string) error { return nil }
	return &source{add: nothing, remove: nothing, close: func() error { return nil }}
}
