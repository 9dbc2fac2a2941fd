package configured

import (
	"path/filepath"
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
)

// between reports whether a file that had servers has none only because it is being written; s.mu is held.
func (s *Source) between(f config.File) bool {
	if !f.Missing {
		delete(s.gone, f.Path)
	}
	switch {
	case len(s.good[f.Path]) == 0 || s.watch == nil:
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
	return s.awaited(f.Path)
}

// giveUp reads the files again, one of which has been missing for long.
func (s *Source) giveUp(path string) {
	s.mu.Lock()
	if s.watch != nil {
		delete(s.watch.due, path)
	}
	s.mu.Unlock()
	s.Load(filepath.Base(path) + " was removed")
}

// writing reports whether a file that the definition is made from besides may be about to be written: it has been missing, or
// empty, for a moment only. s.mu is held.
func (s *Source) writing() (soon bool) {
	for _, path := range s.blank {
		soon = s.awaited(path) || soon
	}
	return soon
}

// awaited reports whether a file has been gone for a moment only, and has all read again when that is over; s.mu is held.
func (s *Source) awaited(path string) bool {
	since, known := s.gone[path]
	if !known {
		since = time.Now()
		s.gone[path] = since
	}
	if s.watch == nil || time.Since(since) >= s.opts.MissingGrace {
		return false
	}
	s.watch.later(path, s.opts.MissingGrace, func() { s.giveUp(path) })
	return true
}
