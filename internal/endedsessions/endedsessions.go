// Package endedsessions keeps in a file which legacy sessions of HTTP have ended. The sealing keys
// of dowel outlive its process, so the next process would accept the id of a session that a client
// has ended.
package endedsessions

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// fewLines is the number of lines below which the file is not made shorter.
const fewLines = 1024

// Store is a session store of one process. The ends of sessions are in its file; other records,
// which only sessions of an earlier process need, are in memory. It is safe for concurrent use.
type Store struct {
	path string

	mu      sync.Mutex // guards the rest
	file    *os.File
	ended   map[string]time.Time // until when the end is kept
	records map[string]record
	lines   int // of the file
	sweepAt int // number of entries at which expired ones are dropped
}

type record struct {
	data  []byte
	until time.Time
}

// Open opens the store in a file, which it makes if it does not exist. The caller must call Close.
func Open(path string) (*Store, error) {
	s := &Store{path: path, ended: map[string]time.Time{}, records: map[string]record{}, sweepAt: fewLines}
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, cannotKeep(err)
	}
	for line := range bytes.Lines(content) {
		key, text, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if until, err := strconv.ParseInt(string(text), 10, 64); err == nil { // the last line may have been cut off
			s.ended[string(key)] = time.Unix(until, 0)
		}
	}
	if err := s.rewrite(); err != nil {
		return nil, cannotKeep(err)
	}
	return s, nil
}

func cannotKeep(err error) error {
	return fmt.Errorf("the ends of sessions cannot be kept: %w", err)
}

// IsPrivate says that no other process uses the store at the same time.
func (s *Store) IsPrivate() bool { return true }

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}

// endedRecord is the record of a session that has ended.
var endedRecord = []byte(`{"ended":true}`)

// Load returns the record of a session, or nil for an unknown session.
func (s *Store) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, ok := s.ended[key]; ok && time.Now().Before(until) {
		return endedRecord, nil
	}
	if r := s.records[key]; time.Now().Before(r.until) {
		return r.data, nil
	}
	return nil, nil
}

// Save keeps the record of a session until the given time. A final one is written to the file.
func (s *Store) Save(_ context.Context, key string, data []byte, final bool, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ended := s.ended[key]; ended {
		return nil
	}
	if !final {
		s.records[key] = record{data, until}
		return s.sweep()
	}
	if _, err := fmt.Fprintf(s.file, "%s %d\n", key, until.Unix()+1); err != nil {
		return cannotKeep(err)
	}
	s.lines++
	delete(s.records, key)
	s.ended[key] = until
	return s.sweep()
}

// sweep drops expired entries when there are many entries. s.mu is held.
func (s *Store) sweep() error {
	if len(s.ended)+len(s.records) < s.sweepAt {
		return nil
	}
	s.dropExpired()
	s.sweepAt = max(fewLines, 2*(len(s.ended)+len(s.records)))
	if s.lines < fewLines || s.lines < 2*len(s.ended) {
		return nil
	}
	if err := s.rewrite(); err != nil {
		return cannotKeep(err)
	}
	return nil
}

// dropExpired drops expired entries from memory. s.mu is held.
func (s *Store) dropExpired() {
	now := time.Now()
	for key, until := range s.ended {
		if !now.Before(until) {
			delete(s.ended, key)
		}
	}
	for key, r := range s.records {
		if !now.Before(r.until) {
			delete(s.records, key)
		}
	}
}

// rewrite writes a file with the entries that have not expired, and opens it. s.mu is held, or
// nothing else knows s.
func (s *Store) rewrite() error {
	s.dropExpired()
	var text []byte
	for key, until := range s.ended {
		text = fmt.Appendf(text, "%s %d\n", key, until.Unix())
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	if s.file != nil {
		_ = s.file.Close() // it is replaced
	}
	change := func([]byte, bool) ([]byte, error) { return text, nil }
	if _, err := atomicfile.Update(s.path, change, atomicfile.Options{Perm: 0o600, FolderPerm: 0o700}); err != nil {
		return err
	}
	s.lines = len(s.ended)
	file, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	s.file = file
	return err
}
