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

// forgottenAge is the age of an entry in the system's folder for temporary files that no process
// uses any more. Tasks and conversations may last for days.
const forgottenAge = 7 * 24 * time.Hour

// RemoveForgotten removes what killed processes have left in the system's folder for temporary
// files: files and folders of this user with a name that begins with prefix, and that have not
// changed for a week. It ignores errors, because a leftover harms nothing.
func RemoveForgotten(prefix string) {
	folder, err := os.OpenRoot(os.TempDir())
	if err != nil {
		return
	}
	defer folder.Close()
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		info, err := folder.Lstat(e.Name())
		if err == nil && (info.IsDir() || info.Mode().IsRegular()) && isOwn(info) && time.Since(info.ModTime()) > forgottenAge {
			_ = folder.RemoveAll(e.Name())
		}
	}
}
