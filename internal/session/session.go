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
	"github.com/dowel-mcp/dowel/mcp"
)

// Session is a conversation that is being kept. It is not safe for concurrent use.
type Session struct {
	path   string
	header Header
	file   *os.File // nil before the first line, and behind an error
	size   int64    // of the file as this process knows it
	kept   conversation
	failed error
}

// New returns a session for a folder. Its file is made when there is something to be kept.
func New(folder string, h Header) *Session {
	s := At("", h)
	s.path = filepath.Join(folder, s.header.ID+extension)
	return s
}

// At is New for a file of any name, which must not be there yet.
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

const extension = ".jsonl"

// newID sorts by time, and is not the same twice.
func newID(began time.Time) string {
	var some [2]byte
	_, _ = rand.Read(some[:]) // it never fails
	return began.UTC().Format("20060102-150405-") + hex.EncodeToString(some[:])
}

// Header returns what the session is, and Path where its file is or will be.
func (s *Session) Header() Header { return s.header }
func (s *Session) Path() string   { return s.path }

// With says which model the session begins with, before anything is kept.
func (s *Session) With(model string) { s.header.Model = model }

// Results is the folder beside the file for what belongs to the conversation and is too long for it ([agent.Options]).
func (s *Session) Results() string { return strings.TrimSuffix(s.path, extension) + ".results" }

// Message keeps a message as it is said.
func (s *Session) Message(m agent.Message) error { return s.write(&record{Message: &m}) }

// Result keeps what a call of the last reply has come to.
func (s *Session) Result(r mcp.ToolResultContent) error {
	return s.write(&record{Result: &mcp.Content{Type: mcp.ContentToolResult, ToolResult: &r}})
}

// Note keeps something that has happened and is no part of the conversation. Where nothing has been said yet, it is not kept.
func (s *Session) Note(event string, data any) error {
	if s.size == 0 {
		return s.failed
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.write(&record{Event: event, Data: raw})
}

// Sync makes the file say what the conversation is now. It writes what is missing, and what has become different.
func (s *Session) Sync(all []agent.Message) error {
	same := 0
	for same < len(all) && same < len(s.kept) && equal(&s.kept[same], &all[same]) {
		same++
	}
	if same < len(s.kept) {
		if err := s.write(&record{Keep: &same}); err != nil {
			return err
		}
	}
	for i := range all[same:] {
		if err := s.write(&record{Message: &all[same+i]}); err != nil {
			return err
		}
	}
	return nil
}

func equal(a, b *agent.Message) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// ErrElsewhere is the error of a session whose file somebody else has written to: what is said here is not kept any more.
var ErrElsewhere = errors.New("another program goes on with the session")

// write adds a line. The first error is the last: what follows it would have a gap before it.
func (s *Session) write(r *record) error {
	if s.failed != nil {
		return s.failed
	}
	if s.failed = s.open(); s.failed == nil {
		now := time.Now()
		r.At = &now
		s.failed = s.line(r)
	}
	if s.failed != nil {
		s.failed = fmt.Errorf("the session %s is not kept any more: %w", s.header.ID, s.failed)
		s.shut()
		return s.failed
	}
	s.kept.take(r)
	return nil
}

// open opens the file, and makes it with its header where it is new. A line without an end is taken away.
func (s *Session) open() error {
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
		return s.line(&record{Session: &s.header})
	}
	return s.cut()
}

// cut takes away what stands behind the last line that was read.
func (s *Session) cut() error {
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

func (s *Session) line(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != s.size {
		return ErrElsewhere
	}
	n, err := s.file.Write(append(text, '\n'))
	s.size += int64(n)
	return err
}

func (s *Session) shut() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// Close closes the file.
func (s *Session) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
