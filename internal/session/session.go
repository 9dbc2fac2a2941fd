package session

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// Session stores one conversation in a file. It is not safe for concurrent use.
type Session struct {
	path         string
	header       Header
	file         *os.File // nil before the first line and after an error
	size         int64    // of the file, as this process has read and written it
	conversation conversation
	failed       error
	prompted     promptMemory
	release      func() // ends the hold; nil if this process does not hold the session
}

// New returns a new session in a folder. Its file is created with the first message.
func New(folder string, h Header) *Session {
	s := At("", h)
	s.path = PathOf(folder, s.header.ID)
	return s
}

// PathOf returns the file of the session with an ID in a folder.
func PathOf(folder, id string) string { return filepath.Join(folder, id+extension) }

// At is like [New] with the path of a file that must not exist yet.
func At(path string, h Header) *Session {
	h.Version = version
	if h.Began.IsZero() {
		h.Began = time.Now().Truncate(time.Second) // not in the future
	}
	if h.ID == "" {
		h.ID = newID(h.Began)
	}
	return &Session{path: path, header: h}
}

// Extensions of a session's file, of the folder of its long results, and of its lock.
const (
	extension        = ".jsonl"
	resultsExtension = ".results"
	lockExtension    = ".lock"
)

// newID returns an ID that sorts by time, with a random part for sessions of the same second.
func newID(began time.Time) string {
	var some [2]byte
	_, _ = rand.Read(some[:]) // it never fails
	return began.UTC().Format("20060102-150405-") + hex.EncodeToString(some[:])
}

// Header returns the session's description, and Path its file, which might not exist yet.
func (s *Session) Header() Header { return s.header }
func (s *Session) Path() string   { return s.path }

// With sets the first model's name before anything is stored.
func (s *Session) With(model string) { s.header.Model = model }

// Results returns the folder beside the file for long results of tools ([agent.Options]).
func (s *Session) Results() string { return strings.TrimSuffix(s.path, extension) + resultsExtension }

// Message stores a message.
func (s *Session) Message(m agent.Message) error { return s.writeRecord(&record{Message: &m}) }

// Result stores the result of a call of the last reply.
func (s *Session) Result(r mcp.ToolResultContent) error {
	return s.writeRecord(&record{Result: &mcp.Content{Type: mcp.ContentToolResult, ToolResult: &r}})
}

// Note stores an event without the secrets that can be told by their form. Before the first message
// it does nothing.
func (s *Session) Note(event string, data any) error {
	if s.size == 0 {
		return s.failed
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.writeRecord(&record{Event: event, Data: json.RawMessage(secretmask.Text(string(raw)))})
}

// Sync makes the file equal to a conversation. It writes missing and changed messages.
func (s *Session) Sync(all []agent.Message) error {
	same, before := s.countSame(all), len(s.conversation)
	if same < len(s.conversation) {
		if err := s.writeRecord(&record{Keep: &same}); err != nil {
			return err
		}
	}
	for i := range all[same:] {
		if err := s.writeRecord(&record{Message: &all[same+i], Again: same+i < before}); err != nil {
			return err
		}
	}
	return nil
}

func sameMessage(a, b *agent.Message) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// ErrElsewhere is the error of a session if another process has written to its file. Nothing is
// stored any more.
var ErrElsewhere = errors.New("another program continues the session")

// writeRecord adds a line. After an error it writes nothing more, since the file would have a
// gap.
func (s *Session) writeRecord(r *record) error {
	if s.failed != nil {
		return s.failed
	}
	if s.failed = s.openFile(); s.failed == nil {
		now := time.Now()
		r.At = &now
		s.failed = s.appendLine(r)
	}
	if s.failed != nil {
		s.failed = fmt.Errorf("the conversation %s is not saved from here on: %w", s.header.ID, s.failed)
		s.closeFile()
		return s.failed
	}
	s.conversation.applyRecord(r)
	return nil
}

// openFile opens the file, and creates it with its header if it is new. An incomplete last line
// is removed.
func (s *Session) openFile() error {
	if s.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	flags := os.O_APPEND | os.O_WRONLY
	if s.size == 0 {
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(s.path, flags, 0o600)
	if err != nil {
		return err
	}
	s.file = file
	if s.size == 0 {
		return s.appendLine(&record{Session: &s.header})
	}
	return s.truncateTail()
}

// truncateTail removes an incomplete line behind the last line that was read.
func (s *Session) truncateTail() error {
	info, err := s.file.Stat()
	if err != nil || info.Size() == s.size {
		return err
	}
	rest, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer rest.Close()
	tail, err := io.ReadAll(io.NewSectionReader(rest, s.size, info.Size()-s.size))
	switch {
	case err != nil:
		return err
	case info.Size() < s.size, bytes.IndexByte(tail, '\n') >= 0:
		return ErrElsewhere
	}
	return s.file.Truncate(s.size)
}

func (s *Session) appendLine(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(s.path); err != nil || !os.SameFile(info, there) {
		return errDeleted
	}
	if info.Size() != s.size {
		return ErrElsewhere
	}
	n, err := s.file.Write(append(text, '\n'))
	s.size += int64(n)
	return err
}

func (s *Session) closeFile() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// Close closes the file, and ends the hold.
func (s *Session) Close() error {
	if s.release != nil {
		s.release()
		s.release = nil
	}
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
