package data

import (
	"context"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// DefaultPoll is the default of [Options.Poll].
const DefaultPoll = 5 * time.Second

// pollFiles notifies clients of files that have come, gone or changed.
func (s *Server) pollFiles(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	known := s.readFileStates(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		current := s.readFileStates(ctx)
		if ctx.Err() != nil {
			return // it may lack files
		}
		s.announceChanges(known, current)
		known = current
	}
}

// fileState tells whether a file has changed.
type fileState struct {
	size    int64
	changed time.Time
}

// readFileStates returns the states of the listed files by their URIs.
func (s *Server) readFileStates(ctx context.Context) map[string]fileState {
	all := map[string]fileState{}
	for _, name := range s.findFiles(ctx) {
		info, err := s.roots[0].Stat(name)
		if err != nil {
			continue // it has gone meanwhile
		}
		all[uriPrefix+(&url.URL{Path: name}).EscapedPath()] = fileState{info.Size(), info.ModTime()}
	}
	return all
}

func (s *Server) announceChanges(known, current map[string]fileState) {
	listChanged := false
	for uri, state := range current {
		old, existed := known[uri]
		listChanged = listChanged || !existed
		if existed && old != state {
			s.Updated(uri)
		}
	}
	for uri := range known {
		if _, exists := current[uri]; !exists {
			listChanged = true
			s.Updated(uri)
		}
	}
	if listChanged {
		s.ListChanged(server.KindResource)
	}
}
