package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

const (
	maxFiles   = 20_000
	maxFolders = 2_000 // that the system is asked to watch below globs; it has limits of its own
	maxHashed  = 1 << 20
)

// unreadable is the mark of a file that is there but cannot be read.
const unreadable = "?"

// sighting is what was seen of a file.
type sighting struct {
	mark  string // its hash; "" if it is not there; what begins with ? is no hash
	file  bool
	globs []string
}

// watched reports whether any target is the file's.
func (s sighting) watched() bool { return s.file || len(s.globs) > 0 }

func (s sighting) hash() string {
	if s.mark == "" || s.mark[0] == unreadable[0] {
		return ""
	}
	return s.mark
}

// stamp is what a file's content need not be read again for.
type stamp struct {
	info os.FileInfo
	mark string
	at   time.Time
}

// racy is how close to its reading a file's time may be for another change to have the same time.
const racy = 2 * time.Second

// survey is one look at all targets.
type survey struct {
	*Watcher
	seen    map[string]sighting
	places  places
	folders int // below globs
}

func (w *Watcher) survey() *survey {
	s := &survey{Watcher: w, seen: map[string]sighting{}, places: newPlaces()}
	for _, path := range w.targets.files {
		s.places.follow(path)
		s.see(path, false)
	}
	for _, g := range w.targets.globs {
		s.places.follow(g.base)
		if real, err := filepath.EvalSymlinks(g.base); err == nil { // else it is not there
			s.tree(g, g.base, real, nil)
		}
	}
	return s
}

// see looks at one file.
func (s *survey) see(path string, glob bool) {
	if _, ok := s.seen[path]; ok {
		return
	}
	if mark := s.mark(path, glob); mark != "" {
		now := s.targets.of(path)
		now.mark = mark
		s.seen[path] = now
	}
}

func (s *survey) mark(path string, glob bool) string {
	info, err := os.Stat(path)
	if absent(err) || err == nil && !info.Mode().IsRegular() {
		return ""
	}
	if err != nil {
		return unreadable
	}
	if glob && info.Size() > maxHashed {
		return fmt.Sprintf("%s%d %d", unreadable, info.Size(), info.ModTime().UnixNano())
	}
	if old, ok := s.stamps[path]; ok && os.SameFile(old.info, info) && old.info.Size() == info.Size() &&
		old.info.ModTime().Equal(info.ModTime()) && old.at.Sub(info.ModTime()) > racy {
		return old.mark
	}
	at := time.Now()
	content, err := os.ReadFile(path)
	if absent(err) {
		return ""
	}
	if err != nil {
		return unreadable
	}
	mark := atomicfile.Hash(content)
	s.stamps[path] = stamp{info, mark, at}
	return mark
}

// absent reports an error that says that there is no such file, which includes one below a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || notFolder(err)
}

// tree looks at what is at path, and below it, as far as g may match it. real is path without links, by which
// the system is to watch: it watches a folder by one name only. names are path's elements below g's base.
func (s *survey) tree(g glob, path, real string, names []string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if !info.IsDir() {
		if info.Mode().IsRegular() && g.matches(names) {
			s.file(path)
		}
		return
	}
	if s.folders++; s.folders <= maxFolders {
		s.places.folders[real], s.places.trees[real], s.places.names[real] = true, true, true
	} else {
		s.warn("folders", fmt.Errorf("more than %d folders are watched: changes in the others are seen every %v only", maxFolders, s.opts.Poll))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		s.warn(path, err)
	}
	for _, e := range entries {
		below := append(names[:len(names):len(names)], e.Name())
		if !g.leads(below) || e.IsDir() && g.passes(e.Name()) {
			continue
		}
		full := filepath.Join(path, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			if target, err := os.Stat(full); err != nil || target.IsDir() {
				continue
			}
		}
		s.tree(g, full, filepath.Join(real, e.Name()), below)
	}
}

func (s *survey) file(path string) {
	if len(s.seen) >= maxFiles {
		s.warn("files", fmt.Errorf("more than %d files are to be watched: the others are not", maxFiles))
		return
	}
	s.see(path, true)
}
