// Package watch tells when the content of files changes: configuration, which may not exist yet and may be replaced, linked and
// rewritten in all the ways that editors have, and the code of servers that are being developed.
//
// What counts is content: a touched file has not changed, nor has one that says again what it said when it was last told of.
// Changes are told when a file has been at rest for a moment, and together; a file that does not come to rest is told of
// once a second or so, with what it says then, and always once more with what it says in the end. Nothing is lost while nobody
// listens: changes that have not been taken yet are replaced by newer ones.
//
// Folders are watched by the system's means (package fsnotify), and the files are looked at every few seconds besides, for network
// file systems that tell nothing and for the system's limits.
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

// Options are for [New]; the zero value is the default.
type Options struct {
	// Quiet is how long a file must be at rest before it is told of, default [DefaultQuiet].
	Quiet time.Duration

	// Limit is how long a file that does not come to rest is waited for, default [DefaultLimit].
	Limit time.Duration

	// Poll is how often the files are looked at without a reason, default [DefaultPoll]. Where the system's means
	// fail altogether, it is at most a second.
	Poll time.Duration

	// Warn is told what is in the way of watching, once each; default nobody. It must not call the watcher.
	Warn func(error)
}

// Targets are what a [Watcher] watches. Relative paths start at the working directory of the time of [Watcher.Set].
type Targets struct {
	// Files are watched each by its path, which may lead through symbolic links and need not exist.
	Files []string

	// Globs are patterns as of [filepath.Match], in which ** stands for any number of folders. A folder means all that is below
	// it, whether it is named or matches a pattern; what exists by a pattern's name is that file or folder. Folders called
	// .git, node_modules, __pycache__ and .venv are passed over unless they are named, and links to folders are not followed.
	// At most 20,000 files are watched so; those over 1 MiB have changed when their size or time has.
	Globs []string
}

// Kind says what has happened to a file since it was last told of.
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

// Change is what has happened to a file.
type Change struct {
	Path  string // absolute; links in it are not resolved
	Kind  Kind
	Hash  string   // the atomicfile.Hash of its content; "" if it is removed, cannot be read, or is over the limit of globs
	File  bool     // whether it is one of Targets.Files
	Globs []string // those of Targets.Globs that it matches
}

// ErrClosed is the error of using a closed watcher.
var ErrClosed = errors.New("the watcher is closed")

// Watcher watches files. It is safe for concurrent use and must be closed.
type Watcher struct {
	commands chan func()
	out      chan []Change
	stop     chan struct{}
	done     chan struct{}
	closing  sync.Once

	// All below belongs to the goroutine of run.
	opts    Options
	source  *source
	targets targets
	stamps  map[string]stamp    // what has been read, to read less
	told    map[string]string   // what has been told of each file: its mark; "" if it is not there
	seen    map[string]sighting // what was last seen
	pending pending
	expects []expectation
	places  places
	watched map[string]folder
	warned  map[string]bool

	timer *time.Timer // when the files will have been at rest
	began time.Time   // when the changes began that timer waits for; zero if it does not run
}

// New returns a watcher that watches nothing yet.
func New(o Options) *Watcher {
	src, err := newSource()
	w := newWatcher(o, src)
	if err != nil {
		w.opts.Poll = min(w.opts.Poll, time.Second)
		w.warn("source", fmt.Errorf("files are looked at every %v, since the system does not tell of changes: %w", w.opts.Poll, err))
	}
	go w.run()
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
		commands: make(chan func()), out: make(chan []Change), stop: make(chan struct{}), done: make(chan struct{}),
		opts: o, source: src,
		stamps: map[string]stamp{}, told: map[string]string{}, seen: map[string]sighting{},
		watched: map[string]folder{}, warned: map[string]bool{},
	}
}

// Set replaces what is watched. What is new is taken as told: changes are those after Set has returned, so that one who
// reads a file then misses nothing. What was watched before goes on as it was.
func (w *Watcher) Set(t Targets) error {
	next, err := compile(t)
	if err != nil {
		return err
	}
	return w.do(func() { w.retarget(next) })
}

// Expect announces that the caller is about to give the file at path the content with this hash: that change is not told. It
// must be called before the file is written; the hash of a file that is to be removed is "". If that content is not seen within ten seconds, whatever is there instead is told.
func (w *Watcher) Expect(path, hash string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return w.do(func() { w.expect(path, hash) })
}

// Changes iterates over what has changed, each time all that has since the last. It ends with ctx or [Watcher.Close]. Of
// several loops at a time, each change reaches one.
func (w *Watcher) Changes(ctx context.Context) iter.Seq[[]Change] {
	return func(yield func([]Change) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.done:
				return
			case changes := <-w.out:
				if !yield(changes) {
					return
				}
			}
		}
	}
}

// Close ends the watching, and waits for that.
func (w *Watcher) Close() error {
	w.closing.Do(func() { close(w.stop) })
	<-w.done
	return nil
}

// do runs f on the watcher's goroutine.
func (w *Watcher) do(f func()) error {
	ran := make(chan struct{})
	select {
	case w.commands <- func() { f(); close(ran) }:
		<-ran
		return nil
	case <-w.done:
		return ErrClosed
	}
}

func (w *Watcher) warn(key string, err error) {
	if !w.warned[key] {
		w.warned[key] = true
		if w.opts.Warn != nil {
			w.opts.Warn(err)
		}
	}
}
