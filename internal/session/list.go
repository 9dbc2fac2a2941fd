package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// Summary is a session's entry in a list.
type Summary struct {
	Header
	Path    string
	Changed time.Time // the time of the last line
	Size    int64     // of the file in bytes
	Words   string    // the user's first words, without secrets
}

// List returns the sessions in a folder, the last used first. Other files are skipped.
func List(folder string) ([]Summary, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Summary
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), extension) {
			continue
		}
		if one, ok := readSummary(filepath.Join(folder, e.Name())); ok {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Summary) int {
		return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(b.ID, a.ID))
	})
	return all, nil
}

// readSummary reads a file up to the user's first words.
func readSummary(path string) (one Summary, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return one, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return one, false
	}
	one.Path, one.Changed, one.Size = path, info.ModTime(), info.Size()
	for text, err := range readLines(file) {
		var r record
		if err != nil || json.Unmarshal(text, &r) != nil || !ok && (r.Session == nil || r.Session.Version > version) {
			return one, ok
		}
		switch {
		case r.Session != nil:
			one.Header, ok = *r.Session, true
		case r.Message != nil:
			one.Words = secretmask.Text(r.Message.Text())
			return one, ok
		}
	}
	return one, ok
}

// Find returns the session with an ID. The beginning or the end of the ID is enough if it is
// unique.
func Find(folder, id string) (Summary, error) {
	all, err := List(folder)
	if err != nil {
		return Summary{}, err
	}
	var found []Summary
	for _, s := range all {
		if s.ID == id {
			return s, nil
		}
		if id != "" && (strings.HasPrefix(s.ID, id) || strings.HasSuffix(s.ID, id)) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return Summary{}, fmt.Errorf("there is no session %s", id)
	case 1:
		return found[0], nil
	}
	return Summary{}, fmt.Errorf("%d sessions are called %s…: %s and %s are two of them", len(found), id, found[0].ID, found[1].ID)
}

// Latest returns the last used session that accept accepts, of those in which the user worked in
// the folder worked. An empty worked means any folder, and a nil accept any session. ok is false
// without such a session.
func Latest(folder, worked string, accept func(*Summary) bool) (s Summary, ok bool, err error) {
	all, err := List(folder)
	for _, s := range all {
		if (worked == "" || s.Folder == worked) && (accept == nil || accept(&s)) {
			return s, true, nil
		}
	}
	return s, false, err
}
