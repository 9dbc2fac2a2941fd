package watch

import (
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// source is the system's means of telling that something has happened in a folder.
type source struct {
	add, remove func(folder string) error
	close       func() error
	events      <-chan fsnotify.Event
	errors      <-chan error
}

// newSource returns a source that tells nothing, and an error, where there is none.
func newSource() (*source, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return silent(), err
	}
	add := func(folder string) error {
		if err := n.Add(folder); err != nil {
			return fmt.Errorf("the system does not tell of changes in %s, which is looked at from time to time: %w", folder, err)
		}
		return nil
	}
	return &source{add, n.Remove, n.Close, n.Events, n.Errors}, nil
}

func silent() *source {
	nothing := func(string) error { return nil }
	return &source{add: nothing, remove: nothing, close: func() error { return nil }}
}
