package configured

import (
	"path/filepath"
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
)

// isBeingWritten reports whether a file lacks its servers only because a program is writing it: it
// is empty, or missing within the grace. s.mu is held.
func (s *Source) isBeingWritten(f config.File) bool {
	if !f.Missing {
		delete(s.missingSince, f.Path)
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

// endGrace loads the files after the grace of a missing file.
func (s *Source) endGrace(path string) {
	s.mu.Lock()
	if s.watch != nil {
		delete(s.watch.timers, path)
	}
	s.mu.Unlock()
	s.Load(filepath.Base(path) + " was removed")
}

// readsFileBeingWritten reports whether the current definition reads a file that is missing or
// empty within the grace. s.mu is held.
func (s *Source) readsFileBeingWritten() (soon bool) {
	for _, path := range s.blankReads {
		soon = s.inGrace(path) || soon
	}
	return soon
}

// inGrace reports whether a file is missing or empty since less than the grace. Then it also makes
// the files load again after the grace. s.mu is held.
func (s *Source) inGrace(path string) bool {
	since, known := s.missingSince[path]
	if !known {
		since = time.Now()
		s.missingSince[path] = since
	}
	if s.watch == nil || time.Since(since) >= s.opts.MissingGrace {
		return false
	}
	s.watch.runLater(path, s.opts.MissingGrace, func() { s.endGrace(path) })
	return true
}
