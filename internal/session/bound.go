package session

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// Bound limits the sessions of a program. A zero field means no limit.
type Bound struct {
	Count int
	Bytes int64 // of files and long results; the newest session alone may have more
}

// RemoveOldest deletes the oldest sessions of a program in a folder until the others keep to the
// bound. Sessions stay that a program continues now, that have open tasks, or that another program
// has continued, because they are the user's conversation then. The error joins what could not be
// deleted.
func RemoveOldest(folder, program string, b Bound) error {
	all, err := List(folder)
	var count int
	var size int64
	for _, s := range all {
		if s.Program != program {
			continue
		}
		count++
		if b.Bytes > 0 {
			size += s.Size + resultsSize(s.Path)
		}
		isOver := b.Count > 0 && count > b.Count || b.Bytes > 0 && size > b.Bytes && count > 1
		if isOver && isRemovable(&s) {
			err = errors.Join(err, Remove(s))
		}
	}
	return err
}

// isRemovable reports whether nothing speaks against the removal of an old session. A file that
// cannot be read stays.
func isRemovable(s *Summary) bool {
	if IsHeld(s.Path) {
		return false
	}
	_, held, err := Load(s.Path)
	return err == nil && !held.IsContinued() && len(OpenTasks(held.Messages)) == 0
}

// resultsSize returns the bytes of the long results of a session's file.
func resultsSize(path string) (size int64) {
	_ = filepath.WalkDir(strings.TrimSuffix(path, extension)+resultsExtension, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // no results, or removed meanwhile
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}
