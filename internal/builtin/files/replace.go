package files

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

const (
	newFile   = 0o666 // permissions before the umask, as is newFolder
	newFolder = 0o777
)

// replacement is new content for a file.
type replacement struct {
	place   place       // without symbolic links
	old     fs.FileInfo // the new file gets its permissions and owner; nil for default permissions
	content []byte      // ignored if from is not nil
	from    io.Reader
	// unchanged fails if the file has changed since the content was made from it. It is nil if the
	// content was not made from the file.
	unchanged func(folder *os.Root, name string) error
}

// resolveTarget follows the links to the file that a change must replace. old is nil if it does not
// exist.
func (s *Server) resolveTarget(p place) (at place, old fs.FileInfo, err error) {
	at, err = p.resolveLinks()
	if err != nil {
		return p, nil, s.explainError(p, err)
	}
	old, err = at.root.Lstat(at.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return at, nil, nil
	case err != nil:
		return p, nil, s.explainError(p, err)
	case old.Mode().IsRegular() && old.Mode().Perm()&0o222 == 0:
		return p, nil, fmt.Errorf("%s is write-protected (permissions %v): it was not changed", s.roots.displayPath(p), old.Mode().Perm())
	}
	return at, old, s.checkRegular(p, old)
}

// replaceFile writes a temporary file and renames it to the target, which is atomic. It keeps the
// folder open meanwhile, so both files are in the same folder inside the root even if another
// process renames parts of the path.
func (r *replacement) replaceFile() error {
	folder, err := openFolderFor(r.place)
	if err != nil {
		return err
	}
	defer folder.Close()
	name := filepath.Base(r.place.name)
	temporary, err := r.writeTemporary(folder)
	if err != nil {
		return err
	}
	if r.unchanged != nil {
		err = r.unchanged(folder, name)
	}
	if err == nil {
		err = folder.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, folder.Remove(temporary))
	}
	return nil
}

// openFolderFor opens the folder of a place. It creates missing folders.
func openFolderFor(p place) (*os.Root, error) {
	dir := p.parent()
	folder, err := dir.root.OpenRoot(dir.name)
	if !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	if err := dir.root.MkdirAll(dir.name, newFolder); err != nil {
		return nil, err
	}
	return dir.root.OpenRoot(dir.name)
}

func (r *replacement) newReader() io.Reader {
	if r.from != nil {
		return r.from
	}
	return bytes.NewReader(r.content)
}

// writeTemporary writes the content to a new file with a random name. The name is not made from the
// target's name, because that may already have the maximal length.
func (r *replacement) writeTemporary(folder *os.Root) (name string, err error) {
	atomicfile.RemoveLeftovers(folder)
	name = atomicfile.TemporaryPrefix + rand.Text()[:16] + atomicfile.TemporarySuffix
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newFile)
	if err != nil {
		return "", err
	}
	if r.old != nil {
		keepOwner(f, r.old)
		err = f.Chmod(r.old.Mode().Perm()) // after keepOwner, because chown clears some bits
	}
	if err == nil {
		_, err = io.Copy(f, r.newReader())
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", errors.Join(err, folder.Remove(name))
	}
	return name, nil
}

// locks serializes changes of the same file. Two files may share a lock; their changes then wait
// for each other without need.
type locks struct {
	once  sync.Once
	seed  maphash.Seed
	slots [64]sync.Mutex
}

// lockPlace locks a place, which must have no symbolic links.
func (l *locks) lockPlace(p place) (unlock func()) {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	slot := &l.slots[maphash.String(l.seed, p.absolutePath())%uint64(len(l.slots))]
	slot.Lock()
	return slot.Unlock
}
