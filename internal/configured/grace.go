package configured

import (
	"os"
	"path/filepath"
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
)

// isBeingWritten reports whether a file lacks its servers only because a program is writing it: it
// is empty, or missing within the grace. s.mu is held.
func (s *Source) isBeingWritten(f config.File) bool {
	if !f.Missing {
		delete(s.stayedAway, f.Path)
	}
	switch {
	case len(s.lastGood[f.Path]) == 0 || s.watch == nil:
		return false
	case f.Empty:
		s.set.Problems = append(s.set.Problems, config.Problem{
			Severity: config.Error, Position: config.Position{Path: f.Path}, Message: "the file is empty, and what it said before holds",
			Hint: "write {} to have no servers",
		})
		return true
	case !f.Missing:
		return false
	}
	return s.inGrace(f.Path)
}

// lookInterval and looks say how often endGrace looks for a file, at the end of its grace.
const (
	lookInterval = 10 * time.Millisecond
	looks        = 25
)

// endGrace loads the files after the grace of a missing or empty file. On a busy machine the grace
// may pass without a look at the file, and a program that rewrites the file all the time may have
// removed it just now. So endGrace looks for a while, and the grace begins anew if the file appears.
func (s *Source) endGrace(path string) {
	stays := staysAway(path)
	s.mu.Lock()
	if s.watch != nil {
		delete(s.watch.timers, path)
	}
	s.stayedAway[path] = stays
	s.mu.Unlock()
	s.Load(filepath.Base(path) + " was removed")
}

// staysAway reports whether a file is missing or empty each time that it looks.
func staysAway(path string) bool {
	for range looks {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return false
		}
		time.Sleep(lookInterval)
	}
	return true
}

// readsFileBeingWritten reports whether the current definition reads a file that is missing or
// empty within the grace. s.mu is held.
func (s *Source) readsFileBeingWritten() (soon bool) {
	for _, path := range s.blankReads {
		soon = s.inGrace(path) || soon
	}
	return soon
}

// inGrace reports whether a file that is missing or empty may still be in the hands of a program
// that writes it. Then it also makes the files load again after the grace. s.mu is held.
func (s *Source) inGrace(path string) bool {
	if s.watch == nil || s.stayedAway[path] {
		return false
	}
	s.watch.runLater(path, s.opts.MissingGrace, func() { s.endGrace(path) })
	return true
}
