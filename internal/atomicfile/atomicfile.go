// Package atomicfile changes files that others read and change too: an editor, another program, another dowel.
//
// Whoever reads such a file sees the old content or the new one, never half of it; and of two changes at a time neither is
// lost. Processes that use this package wait for each other. Those that do not (an editor, say) are noticed: what they
// write between the reading and the replacing of the file is taken as the content to start from. What they write within the
// microseconds between the last look and the rename cannot be noticed by any program.
package atomicfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked is wrapped by the error of [Update] when another process holds the file's lock for too long.
var ErrLocked = errors.New("the file is being changed by another process")

// ErrConflict is wrapped by the error of [Update] when somebody else changed the file at every try.
var ErrConflict = errors.New("the file keeps being changed by somebody else")

// tries is how often an update starts again because somebody else has changed the file meanwhile.
const tries = 8

// Options are for [Update]; the zero value is the default.
type Options struct {
	// Perm is for a file that does not exist yet, default 0o644. One that exists keeps its permissions and, where the
	// system lets us, its owner.
	Perm fs.FileMode

	// FolderPerm is for folders that do not exist yet, default 0o755.
	FolderPerm fs.FileMode

	// Backup keeps the content that is replaced beside the file, as NAME.bak. A NAME.bak that is already there stays as it is,
	// since it may be the only copy from before dowel's first change; where it says something else, the copy is called
	// NAME.20060102-150405.bak, after the time in UTC, with -2, -3, … where that is taken as well.
	Backup bool

	// LockWait bounds the waiting for another process, default 5 s.
	LockWait time.Duration

	// LockFolder is where the lock file goes when it cannot be made beside the file, default the folder dowel/locks in the
	// user's cache folder.
	LockFolder string
}

// Result says what [Update] has done.
type Result struct {
	Path    string // the file itself: where path is a symbolic link, its target
	Changed bool   // whether anything was written
	Hash    string // the [Hash] of what is in the file now; "" if it does not exist
	Backup  string // the copy of the old content; "" if none was asked for or there was nothing to keep
}

// Hash returns a name for content: equal names mean equal content.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Update replaces the content of the file at path by what change returns for it. A file that does not exist has no content
// and exists is false; it is made, with its folders. Where path is a symbolic link, it stays one and its target is replaced.
//
// change is called with the lock held, and again when somebody else has changed the file meanwhile: it must depend on its
// arguments only, and must not keep or modify old. When it returns old unchanged, or nil for a file that does not exist,
// nothing is written. Its error is returned as it is, and nothing is written.
//
// The lock is a file of the name .NAME.lock beside the file, which is removed afterwards. The new content is written to a
// temporary file in the same folder, brought to the disk and renamed. Update is safe for concurrent use, within a process and
// between processes.
func Update(path string, change func(old []byte, exists bool) ([]byte, error), o Options) (Result, error) {
	target, err := resolve(path)
	if err != nil {
		return Result{}, err
	}
	if err := os.MkdirAll(filepath.Dir(target), or(o.FolderPerm, 0o755)); err != nil {
		return Result{}, fmt.Errorf("cannot make the folder of %s: %w", path, err)
	}
	unlock, err := lock(target, o)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	for range tries {
		r, err := try(target, change, o)
		if !errors.Is(err, ErrConflict) {
			return r, err
		}
	}
	return Result{}, fmt.Errorf("%s: %w: try again when it is at rest", path, ErrConflict)
}

// try reads, changes and replaces the file once. Its error is ErrConflict if it was changed meanwhile.
func try(target string, change func([]byte, bool) ([]byte, error), o Options) (Result, error) {
	old, info, err := read(target)
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
	temporary, err := write(target, content, info, or(o.Perm, 0o644))
	if err != nil {
		return Result{}, err
	}
	defer os.Remove(temporary) // fails once it is renamed
	r := Result{Path: target, Changed: true, Hash: Hash(content)}
	if exists && o.Backup {
		if r.Backup, err = backup(target, old, info); err != nil {
			return Result{}, err
		}
	}
	if err := unchanged(target, old, exists); err != nil {
		return Result{}, err
	}
	if err := rename(temporary, target); err != nil {
		return Result{}, fmt.Errorf("cannot replace %s: %w", target, err)
	}
	syncFolder(filepath.Dir(target))
	return r, nil
}

// read returns a file's content; info is nil if there is none.
func read(target string) (content []byte, info fs.FileInfo, err error) {
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
	content, err = os.ReadFile(target)
	if errors.Is(err, fs.ErrNotExist) { // removed since the first look
		return nil, nil, nil
	}
	return content, info, err
}

// unchanged fails with ErrConflict if the file is not what it was any more.
func unchanged(target string, old []byte, existed bool) error {
	now, info, err := read(target)
	if err != nil {
		return err
	}
	if (info != nil) != existed || !bytes.Equal(now, old) {
		return ErrConflict
	}
	return nil
}

// write puts content into a new file beside target, with its permissions and owner, or perm where info is nil.
func write(target string, content []byte, info fs.FileInfo, perm fs.FileMode) (path string, err error) {
	f, err := os.CreateTemp(filepath.Dir(target), ".dowel-*.tmp") // a name of its own: target's may be as long as names can be
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
	// After the owner, whose change would clear set-id bits; and by Chmod, which no umask narrows.
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

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
