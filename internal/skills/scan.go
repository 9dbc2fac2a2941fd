package skills

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of a folder. What exceeds them is left out.
const (
	maxEntries = 20_000 // files and folders
	maxFolders = 16     // depth
)

// snapshot is the state of a folder at a time. It does not change.
type snapshot struct {
	skills   []*Skill              // by URI
	files    map[string]*fileState // by URI: all files of skills
	folders  map[string][]child    // by URI: the files and folders in each folder of a skill
	digests  map[string]*fileState // by path
	problems []string
}

// fileState is a regular file.
type fileState struct {
	path   string // relative to the folder, with slashes
	uri    string
	info   fs.FileInfo
	digest string
	isSafe bool // the digest holds as long as info is the same
}

// child is a file or folder in a folder of a skill.
type child struct {
	name, uri string
	file      *fileState // nil for a folder
}

// entry is a file or folder that was found.
type entry struct {
	path string
	info fs.FileInfo // nil for a folder
}

// scanner makes a snapshot.
type scanner struct {
	root   *os.Root
	prefix string // begins the path of all URIs: the name of the folder, if that is a skill itself
	last   *snapshot
	now    *snapshot
	all    []entry // parents before children, in the order of names
}

// scanFolder returns the state of a folder. Digests of files that have not changed since last are
// not computed again.
func scanFolder(root *os.Root, name string, last *snapshot) (*snapshot, error) {
	s := &scanner{root: root, last: last, now: &snapshot{
		files: map[string]*fileState{}, folders: map[string][]child{}, digests: map[string]*fileState{},
	}}
	if err := s.walk(".", 0); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.all, func(e entry) bool { return e.path == fileName && e.info != nil }) {
		s.prefix = name
	}
	for _, e := range s.all {
		if e.info != nil && path.Base(e.path) == fileName {
			s.addSkill(path.Dir(e.path))
		}
	}
	slices.SortFunc(s.now.skills, func(a, b *Skill) int { return cmp.Compare(a.URI, b.URI) })
	return s.now, nil
}

func (s *scanner) addProblem(folder, format string, args ...any) {
	s.now.problems = append(s.now.problems, folder+": "+fmt.Sprintf(format, args...))
}

// walk collects the entries below a folder.
func (s *scanner) walk(folder string, depth int) error {
	if depth > maxFolders {
		s.addProblem(folder, "it is more than %d folders deep", maxFolders)
		return nil
	}
	found, err := fs.ReadDir(s.root.FS(), folder)
	if err != nil {
		if depth > 0 && !errors.Is(err, os.ErrClosed) { // it has vanished, or is not readable
			s.addProblem(folder, "it cannot be read: %v", err)
			return nil
		}
		return err
	}
	for _, d := range found {
		at := path.Join(folder, d.Name())
		switch {
		case d.Name()[0] == '.':
			continue
		case len(s.all) >= maxEntries:
			s.addProblem(folder, "the folder of skills has more than %d files and folders: the others are left out", maxEntries)
			return nil
		case d.IsDir():
			s.all = append(s.all, entry{path: at})
			if err := s.walk(at, depth+1); err != nil {
				return err
			}
		case d.Type()&fs.ModeSymlink != 0:
			s.addProblem(at, "it is a symbolic link, which is not followed")
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() { // otherwise it has vanished
				s.all = append(s.all, entry{at, info})
			}
		}
	}
	return nil
}

// below returns the entries in a folder, in any depth. They follow the folder's own entry.
func (s *scanner) below(folder string) []entry {
	if folder == "." {
		return s.all
	}
	start := 1 + slices.IndexFunc(s.all, func(e entry) bool { return e.path == folder })
	end := start
	for end < len(s.all) && strings.HasPrefix(s.all[end].path, folder+"/") {
		end++
	}
	return s.all[start:end]
}

// addSkill adds the skill in a folder with SKILL.md, or a problem.
func (s *scanner) addSkill(folder string) {
	skill, entries, err := s.readSkill(folder)
	if err != nil {
		s.addProblem(folder, "%v", err)
		return
	}
	s.now.skills = append(s.now.skills, skill)
	s.addFolders(folder, entries)
}

func (s *scanner) readSkill(folder string) (*Skill, []entry, error) {
	entries := s.below(folder)
	n, total := 0, int64(0)
	for _, e := range entries {
		if e.info != nil {
			n++
			total += min(e.info.Size(), MaxSize+1)
		}
	}
	switch {
	case n > MaxFiles:
		return nil, nil, fmt.Errorf("it has %d files, and a skill may have %d", n, MaxFiles)
	case total > MaxSize:
		return nil, nil, fmt.Errorf("its files have more than %d MiB together", MaxSize>>20)
	}
	text, err := s.readFile(path.Join(folder, fileName))
	if err != nil {
		return nil, nil, err
	}
	object, err := parseFrontmatter(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", fileName, err)
	}
	skill := &Skill{Frontmatter: object}
	if skill.URI = s.uriOf(path.Join(folder, fileName)); skill.URI == "" {
		return nil, nil, errors.New("its path cannot be in a URI: use letters, digits and hyphens")
	}
	for _, e := range entries {
		if e.info == nil {
			continue
		}
		f, err := s.stateOf(e)
		if err != nil {
			return nil, nil, err
		}
		skill.Files = append(skill.Files, File{f.uri, f.digest, f.info.Size()})
	}
	if err := skill.checkEntry(); err != nil {
		return nil, nil, err
	}
	return skill, entries, nil
}

// uriOf returns the URI of a path in the folder, or "" if there is none.
func (s *scanner) uriOf(name string) string {
	name = path.Join(s.prefix, name)
	first, rest, _ := strings.Cut(name, "/")
	authority := strings.NewReplacer(":", "%3A", "@", "%40").Replace(url.PathEscape(first))
	uri := "skill://" + authority
	if rest != "" {
		uri += "/" + escapePath(rest)
	}
	if _, err := url.Parse(uri); err != nil {
		return ""
	}
	return uri
}

// stateOf returns a file with its digest.
func (s *scanner) stateOf(e entry) (*fileState, error) {
	if f := s.now.digests[e.path]; f != nil {
		return f, nil
	}
	if f := s.last.digests[e.path]; f != nil && f.isSafe && sameFile(f.info, e.info) {
		s.keepFile(f)
		return f, nil
	}
	began := time.Now()
	data, err := s.readFile(e.path)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != e.info.Size() {
		return nil, fmt.Errorf("%s has changed while it was read", e.path)
	}
	f := &fileState{path: e.path, uri: s.uriOf(e.path), info: e.info, digest: digestOf(data)}
	// A later change may keep the time of a file that was changed a moment ago.
	f.isSafe = began.Sub(e.info.ModTime()) > 2*time.Second
	s.keepFile(f)
	return f, nil
}

func (s *scanner) keepFile(f *fileState) {
	s.now.digests[f.path], s.now.files[f.uri] = f, f
}

// sameFile reports whether a file is unchanged as far as its description tells.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (s *scanner) readFile(name string) ([]byte, error) { return readFile(s.root, name) }

// readFile reads a regular file of at most MaxSize.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if link, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() || !os.SameFile(info, link) {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s has more than %d MiB", name, MaxSize>>20)
	}
	return data, err
}

// addFolders adds the folder of a skill and the folders in it.
func (s *scanner) addFolders(folder string, entries []entry) {
	s.now.folders[s.folderURI(folder)] = nil
	for _, e := range entries {
		parent, c := s.folderURI(path.Dir(e.path)), child{name: path.Base(e.path), file: s.now.digests[e.path]}
		if c.uri = s.uriOf(e.path); e.info == nil {
			c.uri = s.folderURI(e.path)
			s.now.folders[c.uri] = nil // an outer skill adds the same entries again
		}
		s.now.folders[parent] = append(s.now.folders[parent], c)
	}
}

func (s *scanner) folderURI(name string) string {
	return strings.TrimSuffix(s.uriOf(path.Join(name, fileName)), "/"+fileName)
}
