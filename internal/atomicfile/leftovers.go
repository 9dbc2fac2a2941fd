package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Temporary files have names that begin with TemporaryPrefix and end with TemporarySuffix.
const (
	TemporaryPrefix = ".dowel-"
	TemporarySuffix = ".tmp"
)

// leftoverAge is the age of a temporary file that no process writes any more.
const leftoverAge = time.Hour

// sweptFolders are the folders in which this process has looked for leftovers.
var sweptFolders sync.Map

// RemoveLeftovers removes the temporary files of killed processes from a folder: regular files of
// this user that are over an hour old. It looks in each folder once in the life of the process, and
// ignores errors, because a leftover harms nothing.
func RemoveLeftovers(folder *os.Root) {
	if path, err := filepath.Abs(folder.Name()); err != nil {
		return
	} else if _, swept := sweptFolders.LoadOrStore(path, true); !swept {
		removeLeftovers(folder)
	}
}

func removeLeftovers(folder *os.Root) {
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, TemporaryPrefix) || !strings.HasSuffix(name, TemporarySuffix) {
			continue
		}
		info, err := folder.Lstat(name)
		if err == nil && info.Mode().IsRegular() && isOwn(info) && time.Since(info.ModTime()) > leftoverAge {
			_ = folder.Remove(name)
		}
	}
}

func removeLeftoversAt(path string) {
	if folder, err := os.OpenRoot(path); err == nil {
		defer folder.Close()
		RemoveLeftovers(folder)
	}
}
