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
		delete(s.stayedBlank, f.Path)
	}
	switch {
	case len(s.lastGood[f.Path]) == 0 || s.watch == nil:
		return false
	case f.Empty:
		s.set.Problems = append(s.set.Problems, config.Problem{
			Severity: config.Error, Position: config.Position{Path: f.Path}, Message: "the file is empty, so its last content still applies",
			Hint: "write {} to have no servers",
		})
		return true
	case !f.Missing:
		return false
	}
	return s.inGrace(f.Path)
}

// staysBlank looks at a file this often, with this pause in between.
const (
	lookInterval = 10 * time.Millisecond
	looks        = 25
)

// endGrace loads the files after the grace of a missing or empty file. A program that rewrites the
// file often may have removed it just now, so one look does not tell that the file is gone.
// endGrace looks several times. If the file appears, it has another grace.
func (s *Source) endGrace(path string) {
	stays := staysBlank(path)
	s.mu.Lock()
	if s.watch != nil {
		delete(s.watch.timers, path)
	}
	s.stayedBlank[path] = stays
	s.mu.Unlock()
	s.Load(filepath.Base(path) + " was removed")
}

// staysBlank reports whether a file is missing or empty at every look.
func staysBlank(path string) bool {
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

// inGrace reports whether a program may still be writing a file that is missing or empty. If so,
// the files are loaded again after the grace. s.mu is held.
func (s *Source) inGrace(path string) bool {
	if s.watch == nil || s.stayedBlank[path] {
		return false
	}
	s.watch.runLater(path, s.opts.MissingGrace, func() { s.endGrace(path) })
	return true
}
