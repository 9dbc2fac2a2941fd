package configured

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/dowel-mcp/dowel/internal/config/watch"
)

// WatchFiles watches files for a hub: give it to [hub.Options].Watch. It uses the system's
// notifications and looks at the files from time to time.
func WatchFiles(paths []string, changed func(cause string), failed func(error)) (stop func()) {
	watcher := watch.New(watch.Options{Warn: failed})
	if err := watcher.Set(watch.Targets{Globs: paths}); err != nil {
		failed(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for changes := range watcher.Changes(context.Background()) { // until watcher.Close
			changed(describeChange(changes))
		}
	})
	return func() {
		watcher.Close()
		work.Wait()
	}
}

// describeChange names the first of some changes, such as "main.js was modified".
func describeChange(changes []watch.Change) string {
	return filepath.Base(changes[0].Path) + " was " + changes[0].Kind.String()
}
