package chat

import (
	"cmp"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/session"
)

// findSession returns the session with an ID. For latestSession it returns the last used one of the
// folder that accept accepts; a nil accept accepts all.
func findSession(word, folder string, accept func(*session.Summary) bool) (session.Summary, error) {
	if word != latestSession {
		s, err := session.Find(factory.SessionsDir(), word)
		if err != nil {
			return s, exit.UsageError{Err: err, See: "dowel chat --sessions"}
		}
		return s, nil
	}
	s, ok, err := session.Latest(factory.SessionsDir(), folder, accept)
	if err == nil && !ok {
		err = exit.UsageError{Err: fmt.Errorf("no saved conversation in %s", folder), See: "dowel chat --sessions"}
	}
	return s, err
}

// findResumed returns the session of --resume. Without an ID that is the last conversation of the
// folder: neither a run of a script nor one that another dowel has open. warn tells about one that
// is left out because it is open.
func findResumed(word, folder string, warn func(format string, args ...any)) (session.Summary, error) {
	var open, scripted string // the IDs of the latest ones that are left out
	s, err := findSession(word, folder, func(s *session.Summary) bool {
		switch {
		case isScripted(s):
			scripted = cmp.Or(scripted, s.ID)
			return false
		case session.IsHeld(s.Path):
			open = cmp.Or(open, s.ID)
			return false
		}
		return true
	})
	switch {
	case word != latestSession, err == nil && open == "", err != nil && open == "" && scripted == "":
		return s, err
	case err == nil:
		warn("%s, the last conversation of this folder, is open in another dowel: continuing the one before it", open)
		return s, nil
	case open != "":
		return s, exit.Usagef("%s, the last conversation of this folder, is open in another dowel: continue it there, or name another one with --resume=ID", open)
	}
	return s, exit.Usagef("no saved conversation in %s; its last run by a script continues with --resume=%s", folder, scripted)
}

// isScripted reports whether a session is a run of a script that no user has continued.
func isScripted(s *session.Summary) bool {
	if !s.Scripted {
		return false
	}
	_, held, err := session.Load(s.Path)
	return err != nil || !held.IsContinued()
}
