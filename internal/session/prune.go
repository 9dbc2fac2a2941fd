package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Older returns the sessions in a folder that have not changed since a time, the last used first.
func Older(folder string, than time.Time) ([]Summary, error) {
	all, err := List(folder)
	for i, s := range all {
		if s.Changed.Before(than) {
			return all[i:], err
		}
	}
	return nil, err
}

// errDeleted reports that another process has deleted the file of an open session.
var errDeleted = errors.New("its file was deleted, perhaps by dowel chat --prune")

// Remove deletes a session's file and its long results. A session that a program continues, or that
// has changed since it was listed, stays.
func Remove(s Summary) error {
	if IsHeld(s.Path) {
		return fmt.Errorf("%s is open in another dowel, and stays", s.ID)
	}
	if info, err := os.Stat(s.Path); err == nil && !info.ModTime().Equal(s.Changed) {
		return fmt.Errorf("%s is in use again, and stays", s.ID)
	}
	err := os.RemoveAll(strings.TrimSuffix(s.Path, extension) + resultsExtension)
	if removed := os.Remove(s.Path); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
