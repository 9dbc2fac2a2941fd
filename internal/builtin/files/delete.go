package files

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

type deleteIn struct {
	Path      string `json:"path" doc:"The file, link or folder; a link is deleted itself, not what it leads to"`
	Recursive bool   `json:"recursive,omitzero" doc:"Delete a folder with everything in it"`
}

// Deleted is the result of the tool delete.
type Deleted struct {
	Path string `json:"path"`
	Kind string `json:"kind" doc:"What was deleted: file, folder, link …"`
}

func (s *Server) deletePath(_ context.Context, in deleteIn) (*mcp.CallToolResult, error) {
	p, err := s.roots.parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	if p.isRoot() {
		return nil, fmt.Errorf("%s is an allowed folder, which is not deleted: delete what is in it", s.roots.displayPath(p))
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return nil, s.explainError(p, err)
	}
	defer s.locks.lockPlace(p)()
	out := Deleted{Path: s.roots.displayPath(p), Kind: kindOf(info.Mode())}
	if info.IsDir() && in.Recursive {
		err = p.root.RemoveAll(p.name)
	} else {
		err = p.root.Remove(p.name)
	}
	if err != nil {
		return nil, s.deleteError(p, err)
	}
	return textAndStructured(fmt.Sprintf("deleted the %s %s", out.Kind, out.Path), out)
}

// deleteError explains why something is still there; most often, because it is a folder with
// something in it.
func (s *Server) deleteError(p place, err error) error {
	if names, unread := p.firstNames(maxCompared); notEmpty(err) && unread == nil && len(names) > 0 {
		return fmt.Errorf("the folder %s is not empty, it has %s: set recursive to delete all of it", s.roots.displayPath(p), listSome(names, 10))
	}
	return s.explainError(p, err)
}
