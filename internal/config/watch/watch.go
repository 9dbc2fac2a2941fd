// Package watch reports changes of the content of files: configuration, and the code of servers
// under development. The files may be missing, symbolic links, or rewritten in all the ways that
// editors have.
//
// Only content counts. A touched file has not changed, and neither has a file that returned to its
// last reported content. Changes are reported together when the files have been at rest for a
// moment. A file under constant change is reported about once a second, and once more with its
// final content. Nothing is lost while no reader listens: newer changes replace older ones that
// were not taken.
//
// The watcher uses the system's notifications of changes in folders (package fsnotify). It also
// checks the files every few seconds, for network file systems without notifications and for the
// system's limits.
//
//	w := watch.New(watch.Options{})
//	defer w.Close()
//	if err := w.Set(watch.Targets{Files: []string{".mcp.json"}}); err != nil { … }
//	for changes := range w.Changes(ctx) {
//		reload(changes)
//	}
package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"
)

// The defaults of [Options].
const (
	DefaultQuiet = 200 * time.Millisecond
	DefaultLimit = time.Second
	DefaultPoll  = 5 * time.Second
)

// Options are the options of [New]. The zero value selects the defaults.
type Options struct {
	// Quiet is how long a file must be at rest before its change is reported. Zero means
	// [DefaultQuiet].
	Quiet time.Duration

	// Limit is the longest wait for a file under constant change. Zero means [DefaultLimit].
	Limit time.Duration

	// Poll is the interval of checks without a notification. Zero means [DefaultPoll]. If the
	// system offers no notifications, the interval is at most a second.
	Poll time.Duration

	// Warn receives each problem of watching once. It may be nil and must not call the watcher.
	Warn func(error)
}

// Targets are the files that a [Watcher] watches. Relative paths start at the working directory at
// the time of [Watcher.Set].
type Targets struct {
	// Files are paths of single files. They may lead through symbolic links and need not exist.
	Files []string

	// Globs are patterns in the syntax of [filepath.Match], in which ** also matches any number of
	// folders. A folder that is named or matched stands for all files below it. A pattern that is
	// the name of an existing file or folder means just that. Folders called .git, node_modules,
	// __pycache__ or .venv are skipped unless the pattern contains that name, and links to folders
	// are not followed. At most 20,000 files are watched. A file over 1 MiB counts as changed when
	// its size or time changes.
	Globs []string
}

// Kind is the kind of a [Change].
type Kind int

const (
	Created Kind = iota + 1
	Modified
	Removed
)

func (k Kind) String() string {
	switch k {
	case Created:
		return "created"
	case Modified:
		return "modified"
	case Removed:
		return "removed"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Change is the change of one file.
type Change struct {
	Path  string // absolute, links not resolved
	Kind  Kind
	Hash  string   // atomicfile.Hash of the content; "" if the file is removed, unreadable, or over the size limit of globs
	File  bool     // whether Path is one of Targets.Files
	Globs []string // the Targets.Globs that Path matches
}

// ErrClosed is the error of the methods of a closed watcher.
var ErrClosed = errors.New("the watcher is closed")

// Watcher watches files. It is safe for concurrent use and must be closed.
type Watcher struct {
	commands   chan func()
	deliveries chan []Change
	stop       chan struct{}
	done       chan struct{}
	closing    sync.Once

	// Only the goroutine of watchFiles uses the fields below.
	options      Options
	source       *source
	targets      targets
	stamps       map[string]stamp     // results of earlier reads, by path
	reported     map[string]string    // the fingerprint that a reader received last, by path
	observed     map[string]fileState // results of the last scan, by path
	pending      pendingChanges
	expectations []expectation
	points       watchPoints
	folders      map[string]folder // that the system watches, by path
	warned       map[string]bool   // keys of warnings that Warn has received

	settleTimer   *time.Timer // fires when the files should be at rest
	settlingSince time.Time   // when the first change came that settleTimer waits for; zero if it is stopped
}

// New returns a watcher without targets.
func New(o Options) *Watcher {
	src, err := newSource()
	w := newWatcher(o, src)
	if err != nil {
		w.options.Poll = min(w.options.Poll, time.Second)
		w.warnOnce("source", fmt.Errorf("files are checked every %v, since the system does not report changes: %w", w.options.Poll, err))
	}
	go w.watchFiles()
	return w
}

func newWatcher(o Options, src *source) *Watcher {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&o.Quiet, DefaultQuiet}, {&o.Limit, DefaultLimit}, {&o.Poll, DefaultPoll}} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	return &Watcher{
		commands: make(chan func()), deliveries: make(chan []Change), stop: make(chan struct{}), done: make(chan struct{}),
		options: o, source: src,
		stamps: map[string]stamp{}, reported: map[string]string{}, observed: map[string]fileState{},
		folders: map[string]folder{}, warned: map[string]bool{},
	}
}

// Set replaces the targets. Changes of new targets are reported from the moment that Set returns,
// so a caller who reads a file after Set misses nothing. Targets that were watched before keep
// their state.
func (w *Watcher) Set(t Targets) error {
	next, err := compileTargets(t)
	if err != nil {
		return err
	}
	return w.runOnLoop(func() { w.setTargets(next) })
}

// Expect announces that the caller will give the file at path the content with this hash, or remove
// it if hash is "". That change is then not reported. Call it before writing the file. If the
// content does not appear within ten seconds, the content that is there instead is reported.
func (w *Watcher) Expect(path, hash string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return w.runOnLoop(func() { w.addExpectation(path, hash) })
}

// Changes iterates over the changes, each time all changes since the last. It ends when ctx ends or
// the watcher is closed. If several loops run at once, each change reaches one of them.
func (w *Watcher) Changes(ctx context.Context) iter.Seq[[]Change] {
	return func(yield func([]Change) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.done:
				return
			case changes := <-w.deliveries:
				if !yield(changes) {
					return
				}
			}
		}
	}
}

// Close stops the watcher and waits for its goroutine. Closing twice does no harm.
func (w *Watcher) Close() error {
	w.closing.Do(func() { close(w.stop) })
	<-w.done
	return nil
}

// runOnLoop runs f on the watcher's goroutine.
func (w *Watcher) runOnLoop(f func()) error {
	ran := make(chan struct{})
	select {
	case w.commands <- func() { f(); close(ran) }:
		<-ran
		return nil
	case <-w.done:
		return ErrClosed
	}
}

func (w *Watcher) warnOnce(key string, err error) {
	if !w.warned[key] {
		w.warned[key] = true
		if w.options.Warn != nil {
			w.options.Warn(err)
		}
	}
}
