package files

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop is the goroutine of a watcher.
type loop struct {
	notices    *fsnotify.Watcher // nil if the system has no notices
	stop, done chan struct{}
}

// addFolder asks for notices of a folder. Where that fails, because the folder is not there yet for
// instance, the loop tries again.
func (l *loop) addFolder(folder string) {
	if l.notices != nil {
		_ = l.notices.Add(folder)
	}
}

func (l *loop) removeFolder(folder string) {
	if l.notices != nil {
		_ = l.notices.Remove(folder) // it may be gone
	}
}

// stopLoop ends the loop and waits for that. A nil loop has ended.
func (l *loop) stopLoop() {
	if l != nil {
		close(l.stop)
		<-l.done
	}
}

func (l *loop) run(w *watcher) {
	defer close(l.done)
	var events <-chan fsnotify.Event // a nil channel never has anything
	var errors <-chan error
	if l.notices != nil {
		defer l.notices.Close()
		events, errors = l.notices.Events, l.notices.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	due := time.NewTimer(time.Hour)
	due.Stop()
	defer due.Stop()
	noticed := map[string]bool{}
	for {
		select {
		case <-l.stop:
			return
		case e, ok := <-events:
			if !ok { // the system's means have failed
				events = nil
				continue
			}
			if len(noticed) == 0 {
				due.Reset(settle)
			}
			noticed[filepath.Dir(e.Name)], noticed[e.Name] = true, true
		case _, ok := <-errors: // notices may have been lost
			if !ok {
				errors = nil
				continue
			}
			w.checkTargets(nil)
		case <-due.C:
			w.checkTargets(noticed)
			clear(noticed)
		case <-poll.C:
			l.renewFolders(w.wantedFolders())
			w.checkTargets(nil)
		}
	}
}

// renewFolders asks again for notices of folders that were not there, or have been replaced.
func (l *loop) renewFolders(wanted []string) {
	if l.notices == nil {
		return
	}
	have := l.notices.WatchList()
	for _, folder := range wanted {
		if !slices.Contains(have, folder) {
			l.addFolder(folder)
		}
	}
}
