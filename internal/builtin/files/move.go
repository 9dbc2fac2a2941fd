package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

type moveIn struct {
	From      string `json:"from" doc:"The file or folder; a link is moved itself"`
	To        string `json:"to" doc:"Its new path, not the folder to put it in"`
	Overwrite bool   `json:"overwrite,omitzero" doc:"Replace a file that is there"`
}

// Moved is what the tool move returns.
type Moved struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Kind     string `json:"kind" doc:"What was moved: file, folder, link …"`
	Replaced bool   `json:"replaced" doc:"Whether a file was replaced"`
}

func (s *Server) move(ctx context.Context, in moveIn) (*mcp.CallToolResult, error) {
	from, err := s.roots.locate(in.From)
	if err != nil {
		return nil, err
	}
	to, err := s.roots.locate(in.To)
	if err != nil {
		return nil, err
	}
	info, err := from.root.Lstat(from.name)
	if err != nil {
		return nil, s.explain(from, err)
	}
	out := Moved{From: s.roots.show(from), To: s.roots.show(to), Kind: kindOf(info.Mode())}
	if err := s.movable(from, to, info); err != nil {
		return nil, err
	}
	// Those who edit the file keep to the lock of where it is.
	if at, err := from.resolve(); err == nil {
		defer s.locks.lock(at)()
	}
	if out.Replaced, err = s.replaces(from, to, info, in.Overwrite); err != nil {
		return nil, err
	}
	if err := s.rename(ctx, from, to, info, in.Overwrite); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("moved the %s %s to %s", out.Kind, out.From, out.To)
	if out.Replaced {
		text += ", in place of the file that was there"
	}
	return both(text, out)
}

// movable refuses what cannot be a move.
func (s *Server) movable(from, to place, info fs.FileInfo) error {
	switch {
	case from.isRoot():
		return fmt.Errorf("%s is an allowed folder, which stays where it is", s.roots.show(from))
	case to.isRoot():
		return fmt.Errorf("%s is an allowed folder: give the new path of the %s in it", s.roots.show(to), kindOf(info.Mode()))
	case from == to:
		return errors.New("from and to are the same path: nothing was moved")
	}
	if _, inside := below(from.path(), to.path()); inside && info.IsDir() {
		return fmt.Errorf("%s is inside %s: a folder cannot be moved into itself", s.roots.show(to), s.roots.show(from))
	}
	return nil
}

// replaces looks at what is at the new path.
func (s *Server) replaces(from, to place, info fs.FileInfo, overwrite bool) (bool, error) {
	there, err := to.root.Lstat(to.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, s.explain(to, err)
	case os.SameFile(info, there) && strings.EqualFold(from.name, to.name): // where the system does not tell A from a
		return false, nil
	case os.SameFile(info, there): // renaming one to the other does nothing
		return false, fmt.Errorf("%s and %s are two names of one file: delete the one that is too many", s.roots.show(from), s.roots.show(to))
	case there.IsDir():
		return false, fmt.Errorf("%s is a folder that exists: to put it in there give the path %s", s.roots.show(to), s.roots.show(to.in(filepath.Base(from.name))))
	case info.IsDir():
		return false, fmt.Errorf("%s exists and is not a folder: delete it first, or choose another path", s.roots.show(to))
	case !overwrite:
		return false, fmt.Errorf("%s exists: nothing was moved; set overwrite to replace it", s.roots.show(to))
	}
	return true, nil
}

func (s *Server) rename(ctx context.Context, from, to place, info fs.FileInfo, overwrite bool) error {
	dir := to.folder()
	if err := dir.root.MkdirAll(dir.name, newFolder); err != nil {
		return s.explain(dir, err)
	}
	if from.root != to.root {
		return s.transfer(ctx, from, to, info, overwrite)
	}
	err := error(errNotLinked)
	if info.Mode().IsRegular() && !overwrite {
		err = linked(from, to)
	}
	if errors.Is(err, errNotLinked) {
		err = from.root.Rename(from.name, to.name)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists meanwhile: nothing was moved", s.roots.show(to))
	}
	return s.explain(from, err)
}

var errNotLinked = errors.New("no second name could be given")

// linked moves a file without replacing one that appears in this moment, by a second name for it.
func linked(from, to place) error {
	switch err := from.root.Link(from.name, to.name); {
	case errors.Is(err, fs.ErrExist):
		if same(from, to) {
			return errNotLinked
		}
		return err
	case err != nil: // not every file system has second names
		return errNotLinked
	}
	return from.root.Remove(from.name)
}

func same(a, b place) bool {
	left, err := a.root.Lstat(a.name)
	if err != nil {
		return false
	}
	right, err := b.root.Lstat(b.name)
	return err == nil && os.SameFile(left, right)
}

// transfer moves a file from one root to another: by a copy, since there is no way to rename between two.
func (s *Server) transfer(ctx context.Context, from, to place, info fs.FileInfo, overwrite bool) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a %s, and only files can be moved from one allowed folder to another: move what is in it", s.roots.show(from), kindOf(info.Mode()))
	}
	f, info, err := s.openFile(from)
	if err != nil {
		return err
	}
	defer f.Close()
	r := replacement{place: to, old: info, from: copying{ctx, f}}
	if !overwrite {
		r.unchanged = absent
	}
	if err := r.replace(); err != nil {
		return s.explain(to, err)
	}
	return s.explain(from, from.root.Remove(from.name))
}

// absent fails if there is something by now.
func absent(folder *os.Root, name string) error {
	if _, err := folder.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists meanwhile: nothing was moved", name)
	}
	return nil
}

// copying reads until nobody waits any more.
type copying struct {
	context.Context
	io.Reader
}

func (c copying) Read(b []byte) (int, error) {
	if err := c.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}
