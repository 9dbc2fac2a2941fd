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
	maxFolders = 2_000 // below globs; the system has limits of its own
	maxHashed  = 1 << 20
)

// unreadable is the fingerprint of a file that exists but cannot be read, and the beginning of each
// fingerprint that is not a hash.
const unreadable = "?"

// fileState is the observed state of a file.
type fileState struct {
	fingerprint string   // see computeFingerprint
	file        bool     // whether the path is one of Targets.Files
	globs       []string // the Targets.Globs that the path matches
}

// isWatched reports whether the file belongs to a target.
func (s fileState) isWatched() bool { return s.file || len(s.globs) > 0 }

// contentHash returns the hash of the content, or "" if it is unknown.
func (s fileState) contentHash() string {
	if s.fingerprint == "" || s.fingerprint[0] == unreadable[0] {
		return ""
	}
	return s.fingerprint
}

// stamp is the result of reading a file. The file need not be read again while info stays the same.
type stamp struct {
	info        os.FileInfo
	fingerprint string
	at          time.Time
}

// timestampSlack is the minimal age of a file's time for a stamp to count. File times are coarse: a
// younger file may change again without a new time.
const timestampSlack = 2 * time.Second

// scan is one pass over all targets.
type scan struct {
	*Watcher
	files       map[string]fileState
	points      watchPoints
	folderCount int // below globs
}

// newScan scans all targets.
func (w *Watcher) newScan() *scan {
	s := &scan{Watcher: w, files: map[string]fileState{}, points: newWatchPoints()}
	for _, path := range w.targets.files {
		s.points.followPath(path)
		s.addFile(path, false)
	}
	for _, g := range w.targets.globs {
		s.points.followPath(g.base)
		if real, err := filepath.EvalSymlinks(g.base); err == nil { // otherwise it does not exist
			s.addTree(g, g.base, real, nil)
		}
	}
	return s
}

// addFile adds the state of one file.
func (s *scan) addFile(path string, glob bool) {
	if _, ok := s.files[path]; ok {
		return
	}
	if fingerprint := s.computeFingerprint(path, glob); fingerprint != "" {
		now := s.targets.stateOf(path)
		now.fingerprint = fingerprint
		s.files[path] = now
	}
}

// computeFingerprint returns the hash of a file's content, its size and time if it is too large to
// be read, unreadable, or "" if it is missing. It reads the file only if its stamp is out of date.
func (s *scan) computeFingerprint(path string, glob bool) string {
	info, err := os.Stat(path)
	if isAbsent(err) || err == nil && !info.Mode().IsRegular() {
		return ""
	}
	if err != nil {
		return unreadable
	}
	if glob && info.Size() > maxHashed {
		return fmt.Sprintf("%s%d %d", unreadable, info.Size(), info.ModTime().UnixNano())
	}
	if old, ok := s.stamps[path]; ok && os.SameFile(old.info, info) && old.info.Size() == info.Size() &&
		old.info.ModTime().Equal(info.ModTime()) && old.at.Sub(info.ModTime()) > timestampSlack {
		return old.fingerprint
	}
	at := time.Now()
	content, err := os.ReadFile(path)
	if isAbsent(err) {
		return ""
	}
	if err != nil {
		return unreadable
	}
	fingerprint := atomicfile.Hash(content)
	s.stamps[path] = stamp{info, fingerprint, at}
	return fingerprint
}

// isAbsent reports whether err means that the file does not exist. That includes a path below a
// file.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || isNotFolder(err)
}

// addTree adds path and the files below it that g may match. real is path without links: the system
// watches each folder under one name only. names are the elements of path below the base of g.
func (s *scan) addTree(g glob, path, real string, names []string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if !info.IsDir() {
		if info.Mode().IsRegular() && g.matchesPath(names) {
			s.addGlobFile(path)
		}
		return
	}
	if s.folderCount++; s.folderCount <= maxFolders {
		s.points.folders[real], s.points.trees[real], s.points.names[real] = true, true, true
	} else {
		s.warnOnce("folders", fmt.Errorf("more than %d folders are watched: changes in the others are noticed only every %v", maxFolders, s.options.Poll))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		s.warnOnce(path, err)
	}
	for _, e := range entries {
		below := append(names[:len(names):len(names)], e.Name())
		if !g.mayMatchBelow(below) || e.IsDir() && g.skipsFolder(e.Name()) {
			continue
		}
		full := filepath.Join(path, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			if target, err := os.Stat(full); err != nil || target.IsDir() {
				continue
			}
		}
		s.addTree(g, full, filepath.Join(real, e.Name()), below)
	}
}

// addGlobFile adds a file found by a glob, up to maxFiles.
func (s *scan) addGlobFile(path string) {
	if len(s.files) >= maxFiles {
		s.warnOnce("files", fmt.Errorf("more than %d files are to be watched: the others are not", maxFiles))
		return
	}
	s.addFile(path, true)
}
