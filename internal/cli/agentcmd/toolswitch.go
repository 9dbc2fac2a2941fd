package agentcmd

import (
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/cli/toolname"
)

// toolSwitch holds the tools that the user has taken from the model. It is safe for concurrent use.
type toolSwitch struct {
	mu      sync.Mutex      // guards off
	off     map[string]bool // by the names for people: SERVER.TOOL or SERVER
	changed chan struct{}   // holds a token after a change
}

func newToolSwitch() *toolSwitch {
	return &toolSwitch{off: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// switchTools switches a tool or all tools of a server. A server that is switched on has all its
// tools again. See [Runtime.SwitchTools] for offServer.
func (s *toolSwitch) switchTools(name string, on bool) (offServer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		for other := range s.off {
			if strings.HasPrefix(name, other+".") {
				return other
			}
		}
		delete(s.off, name)
		for other := range s.off {
			if strings.HasPrefix(other, name+".") {
				delete(s.off, other)
			}
		}
	} else {
		s.off[name] = true
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return ""
}

// isOff reports whether a tool, given by its wire name, is switched off.
func (s *toolSwitch) isOff(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	origin, ok := toolname.Split(tool) // a server's name may have dots
	return s.off[toolname.Qualified(tool)] || ok && s.off[origin.Server]
}

// pending returns the channel with a token if the user has switched tools since the last list, or
// nil.
func (s *toolSwitch) pending() <-chan struct{} {
	if len(s.changed) == 0 {
		return nil
	}
	return s.changed
}
