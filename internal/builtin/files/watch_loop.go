package files

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop is the goroutine of a watcher.
type loop struct {
	notifier   *fsnotify.Watcher // nil if the system has no notifications
	stop, done chan struct{}
}

// addFolder requests notifications for a folder. If that fails, for example because the folder does
// not exist yet, the loop tries again at the next poll.
func (l *loop) addFolder(folder string) {
	if l.notifier != nil {
		_ = l.notifier.Add(folder)
	}
}

func (l *loop) removeFolder(folder string) {
	if l.notifier != nil {
		_ = l.notifier.Remove(folder) // fails if the folder no longer exists
	}
}

// stopLoop stops the loop and waits for its end. A nil loop is allowed.
func (l *loop) stopLoop() {
	if l != nil {
		close(l.stop)
		<-l.done
	}
}

func (l *loop) runLoop(w *watcher) {
	defer close(l.done)
	var events <-chan fsnotify.Event // nil if there are none, so that select never chooses it
	var errors <-chan error
	if l.notifier != nil {
		defer l.notifier.Close()
		events, errors = l.notifier.Events, l.notifier.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	defer settled.Stop()
	changed := map[string]bool{} // folders to check when settled fires
	for {
		select {
		case <-l.stop:
			return
		case e, ok := <-events:
			if !ok { // the notifier has failed; polling continues
				events = nil
				continue
			}
			if len(changed) == 0 {
				settled.Reset(settle)
			}
			changed[filepath.Dir(e.Name)], changed[e.Name] = true, true
		case _, ok := <-errors: // notifications may have been lost
			if !ok {
				errors = nil
				continue
			}
			w.checkTargets(nil)
		case <-settled.C:
			w.checkTargets(changed)
			clear(changed)
		case <-poll.C:
			l.renewFolders(w.wantedFolders())
			w.checkTargets(nil)
		}
	}
}

// renewFolders requests notifications for the folders that have none: they did not exist before, or
// have been replaced.
func (l *loop) renewFolders(wanted []string) {
	if l.notifier == nil {
		return
	}
	have := l.notifier.WatchList()
	for _, folder := range wanted {
		if !slices.Contains(have, folder) {
			l.addFolder(folder)
		}
	}
}
