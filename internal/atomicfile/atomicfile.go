// Package atomicfile changes files that other programs read and change too, such as an editor or
// another dowel.
//
// Readers see either the old or the new content, never a mixture, and of two concurrent changes
// none is lost. Processes that use this package wait for each other. Other programs do not take
// part in the locking, but their changes are noticed: if a file changes between reading and
// replacing, the update starts again from the new content. Only a change within the microseconds
// between the last check and the rename goes unnoticed, which no program can avoid.
//
//	r, err := atomicfile.Update(path, func(old []byte, exists bool) ([]byte, error) {
//		return edit.Set(old, edit.JSON, keys, value)
//	}, atomicfile.Options{Backup: true})
package atomicfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked is wrapped by the error of [Update] if another process holds the file's lock for too
// long.
var ErrLocked = errors.New("the file is being changed by another process")

// ErrConflict is wrapped by the error of [Update] if another program changed the file during every
// attempt.
var ErrConflict = errors.New("the file keeps being changed by another program")

// maxTries limits the attempts of an update.
const maxTries = 8

// Options are the options of [Update]. The zero value selects the defaults.
type Options struct {
	// Perm is the mode of a new file. Zero means 0o644. An existing file keeps its mode and, if the
	// system allows it, its owner.
	Perm fs.FileMode

	// FolderPerm is the mode of new folders. Zero means 0o755.
	FolderPerm fs.FileMode

	// Backup keeps a copy of the replaced content beside the file, as NAME.bak. An existing
	// NAME.bak is never overwritten, since it may be the only copy from before dowel's first
	// change. If it has other content, the copy is named NAME.20060102-150405.bak after the time in
	// UTC, with -2, -3, … if that name is taken too.
	Backup bool

	// lockWait limits the wait for another process. Zero means 5 seconds.
	lockWait time.Duration

	// lockFolder is the folder for lock files that cannot be created beside the file. Empty means
	// dowel/locks in the user's cache folder.
	lockFolder string
}

// Result is the result of [Update].
type Result struct {
	Path    string // the file itself: the target if path is a symbolic link
	Changed bool   // whether a file was written
	Hash    string // the [Hash] of the current content; "" if the file does not exist
	Backup  string // the copy of the old content; "" if none was made
}

// Hash returns the SHA-256 of content in hexadecimal.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Update replaces the content of the file at path by the result of change. A missing file has nil
// content and exists is false; Update creates it together with its folders. If path is a symbolic
// link, the link stays and its target is replaced.
//
// Update calls change with the lock held, and again if another program has changed the file
// meanwhile. change must depend only on its arguments and must not keep or modify old. If it
// returns old unchanged, or nil for a missing file, nothing is written. If it returns an error,
// Update returns that error and writes nothing.
//
// The lock is a file .NAME.lock beside the file, which is removed afterwards. The new content is
// written to a temporary file in the same folder, synced and renamed. Update is safe for concurrent
// use within a process and between processes.
func Update(path string, change func(old []byte, exists bool) ([]byte, error), o Options) (Result, error) {
	target, err := resolveLinks(path)
	if err != nil {
		return Result{}, err
	}
	if err := os.MkdirAll(filepath.Dir(target), cmp.Or(o.FolderPerm, 0o755)); err != nil {
		return Result{}, fmt.Errorf("cannot create the folder of %s: %w", path, err)
	}
	unlock, err := lockFile(target, o)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	for range maxTries {
		r, err := tryUpdate(target, change, o)
		if !errors.Is(err, ErrConflict) {
			return r, err
		}
	}
	return Result{}, fmt.Errorf("%s: %w: try again when the other program has finished", path, ErrConflict)
}

// tryUpdate reads, changes and replaces the file once. It returns ErrConflict if the file changed
// meanwhile.
func tryUpdate(target string, change func([]byte, bool) ([]byte, error), o Options) (Result, error) {
	old, info, err := readFile(target)
	if err != nil {
		return Result{}, err
	}
	exists := info != nil
	content, err := change(old, exists)
	if err != nil {
		return Result{}, err
	}
	if exists && bytes.Equal(old, content) {
		return Result{Path: target, Hash: Hash(old)}, nil
	}
	if !exists && content == nil {
		return Result{Path: target}, nil
	}
	temporary, err := writeTemporary(target, content, info, cmp.Or(o.Perm, 0o644))
	if err != nil {
		return Result{}, err
	}
	defer os.Remove(temporary) // fails after the rename
	r := Result{Path: target, Changed: true, Hash: Hash(content)}
	if exists && o.Backup {
		if r.Backup, err = makeBackup(target, old, info); err != nil {
			return Result{}, err
		}
	}
	if err := checkUnchanged(target, old, exists); err != nil {
		return Result{}, err
	}
	if err := renameFile(temporary, target); err != nil {
		return Result{}, fmt.Errorf("cannot replace %s: %w", target, err)
	}
	syncFolder(filepath.Dir(target))
	return r, nil
}

// readFile returns a file's content. info is nil if the file does not exist.
func readFile(target string) (content []byte, info fs.FileInfo, err error) {
	info, err = os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a file", target)
	}
	content, err = readSharedFile(target)
	if errors.Is(err, fs.ErrNotExist) { // removed after the Stat
		return nil, nil, nil
	}
	return content, info, err
}

// checkUnchanged returns ErrConflict if the file has changed since it was read.
func checkUnchanged(target string, old []byte, existed bool) error {
	now, info, err := readFile(target)
	if err != nil {
		return err
	}
	if (info != nil) != existed || !bytes.Equal(now, old) {
		return ErrConflict
	}
	return nil
}

// writeTemporary writes content to a new file beside target. The file gets the mode and owner of
// info, or perm if info is nil.
func writeTemporary(target string, content []byte, info fs.FileInfo, perm fs.FileMode) (path string, err error) {
	folder := filepath.Dir(target)
	removeLeftoversAt(folder)
	f, err := os.CreateTemp(folder, TemporaryPrefix+"*"+TemporarySuffix) // a short name: target's own may have the maximal length
	if err != nil {
		return "", fmt.Errorf("cannot write beside %s: %w", target, err)
	}
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("cannot write %s: %w", target, closed)
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if info != nil {
		keepOwner(f, info)
		perm = info.Mode().Perm()
	}
	// The mode is set after the owner, because changing the owner clears set-id bits, and with
	// Chmod, because a umask would restrict it otherwise.
	if err = f.Chmod(perm); err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = fmt.Errorf("cannot write %s: %w", target, err)
	}
	return f.Name(), err
}
