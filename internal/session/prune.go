package session

import (
	"errors"
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

// Remove deletes a session's file and its long results.
func Remove(s Summary) error {
	err := os.RemoveAll(strings.TrimSuffix(s.Path, extension) + resultsExtension)
	if removed := os.Remove(s.Path); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
