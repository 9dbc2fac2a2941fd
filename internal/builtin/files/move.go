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
	From      string `json:"from" doc:"The file or folder; of a link, the link is moved, not its target"`
	To        string `json:"to" doc:"The new path, including the name; not the folder to move it into"`
	Overwrite bool   `json:"overwrite,omitzero" doc:"Replace an existing file at the new path"`
}

// Moved is the result of the tool move.
type Moved struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Kind     string `json:"kind" doc:"The kind of the moved entry: file, folder, link …"`
	Replaced bool   `json:"replaced" doc:"Whether a file was replaced"`
}

func (s *Server) movePath(ctx context.Context, in moveIn) (*mcp.CallToolResult, error) {
	from, err := s.roots.parsePath(in.From)
	if err != nil {
		return nil, err
	}
	to, err := s.roots.parsePath(in.To)
	if err != nil {
		return nil, err
	}
	info, err := from.root.Lstat(from.name)
	if err != nil {
		return nil, s.explainError(from, err)
	}
	out := Moved{From: s.roots.displayPath(from), To: s.roots.displayPath(to), Kind: kindOf(info.Mode())}
	if err := s.checkMovable(from, to, info); err != nil {
		return nil, err
	}
	// Lock the place that the links lead to, as the tools that change a file do.
	if at, err := from.resolveLinks(); err == nil {
		defer s.locks.lockPlace(at)()
	}
	if out.Replaced, err = s.checkTarget(from, to, info, in.Overwrite); err != nil {
		return nil, err
	}
	if err := s.renamePlace(ctx, from, to, info, in.Overwrite); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("moved the %s %s to %s", out.Kind, out.From, out.To)
	if out.Replaced {
		text += " and replaced the file there"
	}
	return textAndStructured(text, out)
}

// checkMovable refuses to move allowed folders, and a folder into itself.
func (s *Server) checkMovable(from, to place, info fs.FileInfo) error {
	switch {
	case from.isRoot():
		return fmt.Errorf("%s is an allowed folder, which cannot be moved: move its contents instead", s.roots.displayPath(from))
	case to.isRoot():
		return fmt.Errorf("%s is an allowed folder: give the new path of the %s inside it", s.roots.displayPath(to), kindOf(info.Mode()))
	case from == to:
		return errors.New("from and to are the same path: nothing was moved")
	}
	if _, inside := relativePath(from.absolutePath(), to.absolutePath()); inside && info.IsDir() {
		return fmt.Errorf("%s is inside %s: a folder cannot be moved into itself", s.roots.displayPath(to), s.roots.displayPath(from))
	}
	return nil
}

// checkTarget returns an error if the new path is taken and must stay. replaces reports whether the
// move replaces a file.
func (s *Server) checkTarget(from, to place, info fs.FileInfo, overwrite bool) (replaces bool, err error) {
	there, err := to.root.Lstat(to.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, s.explainError(to, err)
	case os.SameFile(info, there) && strings.EqualFold(from.name, to.name): // the file system ignores case
		return false, nil
	case os.SameFile(info, there): // a rename would do nothing
		return false, fmt.Errorf("%s and %s are two names of one file: delete the name that you do not need", s.roots.displayPath(from), s.roots.displayPath(to))
	case there.IsDir():
		return false, fmt.Errorf("%s is an existing folder: to move something into it, give the path %s", s.roots.displayPath(to), s.roots.displayPath(to.child(filepath.Base(from.name))))
	case info.IsDir():
		return false, fmt.Errorf("%s exists and is not a folder: delete it first, or choose another path", s.roots.displayPath(to))
	case !overwrite:
		return false, fmt.Errorf("%s exists: nothing was moved; set overwrite to replace it", s.roots.displayPath(to))
	}
	return true, nil
}

func (s *Server) renamePlace(ctx context.Context, from, to place, info fs.FileInfo, overwrite bool) error {
	dir := to.parent()
	if err := dir.root.MkdirAll(dir.name, newFolder); err != nil {
		return s.explainError(dir, err)
	}
	if from.root != to.root {
		return s.copyAndDelete(ctx, from, to, info, overwrite)
	}
	err := errNotLinked
	if info.Mode().IsRegular() && !overwrite {
		err = moveByLink(from, to)
	}
	if errors.Is(err, errNotLinked) {
		err = from.root.Rename(from.name, to.name)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another program has just created %s: nothing was moved", s.roots.displayPath(to))
	}
	return s.explainError(from, err)
}

// errNotLinked reports that a file must be renamed, because it cannot be moved by a hard link.
var errNotLinked = errors.New("no hard link could be made")

// moveByLink moves a file by a hard link. Unlike a rename, this cannot replace a file that another
// program creates at the same moment.
func moveByLink(from, to place) error {
	switch err := from.root.Link(from.name, to.name); {
	case errors.Is(err, fs.ErrExist):
		if samePlace(from, to) {
			return errNotLinked
		}
		return err
	case err != nil: // not every file system has hard links
		return errNotLinked
	}
	return from.root.Remove(from.name)
}

func samePlace(a, b place) bool {
	left, err := a.root.Lstat(a.name)
	if err != nil {
		return false
	}
	right, err := b.root.Lstat(b.name)
	return err == nil && os.SameFile(left, right)
}

// copyAndDelete moves a file to another root. A rename between two roots is not possible.
func (s *Server) copyAndDelete(ctx context.Context, from, to place, info fs.FileInfo, overwrite bool) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a %s, but only files can be moved from one allowed folder to another: move the files one by one", s.roots.displayPath(from), kindOf(info.Mode()))
	}
	f, info, err := s.openFile(from)
	if err != nil {
		return err
	}
	defer f.Close()
	r := replacement{place: to, old: info, from: copying{ctx, f}}
	if !overwrite {
		r.unchanged = checkAbsent
	}
	if err := r.replaceFile(); err != nil {
		return s.explainError(to, err)
	}
	return s.explainError(from, from.root.Remove(from.name))
}

// checkAbsent fails if the name exists in the folder.
func checkAbsent(folder *os.Root, name string) error {
	if _, err := folder.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("another program has just created %s: nothing was moved", name)
	}
	return nil
}

// copying is a reader that fails when the context has ended.
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
