package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dowel-mcp/dowel/agent"
)

// Event is something that happened in a session beside the conversation.
type Event struct {
	Name string
	Data json.RawMessage
}

// Loaded is the content of a file.
type Loaded struct {
	Messages []agent.Message
	Events   []Event
	// Damaged is the number of unreadable lines. An incomplete last line does not count.
	Damaged int
}

// Load reads a session, which can then be continued.
func Load(path string) (*Session, *Loaded, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	s, l := &Session{path: path}, &Loaded{}
	var said conversation
	for text, err := range readLines(file) {
		if err != nil {
			return nil, nil, fmt.Errorf("%s cannot be read: %w", path, err)
		}
		var r record
		bad := json.Unmarshal(text, &r) != nil
		if s.size == 0 {
			if err := s.readHeader(&r, bad); err != nil {
				return nil, nil, fmt.Errorf("%s %w", path, err)
			}
		}
		s.size += int64(len(text))
		switch {
		case bad:
			l.Damaged++
		case r.Event != "":
			l.Events = append(l.Events, Event{r.Event, r.Data})
		default:
			said.applyRecord(&r)
		}
	}
	if s.size == 0 {
		return nil, nil, fmt.Errorf("%s is not a session: it has no line", path)
	}
	s.conversation = said
	l.Messages = agent.Mend(said)
	return s, l, nil
}

// readHeader reads the first line. isBad reports that the line is not JSON.
func (s *Session) readHeader(r *record, bad bool) error {
	switch {
	case bad, r.Session == nil:
		return errors.New("is not a session: its first line does not say so")
	case r.Session.Version > version:
		return fmt.Errorf("was written by a newer program: its version is %d, and %d is the highest known", r.Session.Version, version)
	}
	s.header = *r.Session
	return nil
}

// readLines yields the complete lines of a file with their line ends.
func readLines(from io.Reader) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for r := bufio.NewReader(from); ; {
			text, err := r.ReadBytes('\n')
			if err == io.EOF || !yield(text, err) || err != nil {
				return
			}
		}
	}
}
